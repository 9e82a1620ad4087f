"""The settings of one run, as a command line makes them."""

from collections.abc import Sequence
from pathlib import Path

from stream.config.composition import Composition
from stream.config.run import RunConfig


def compose_run(folder: Path, overrides: Sequence[str]) -> tuple[RunConfig, Path]:
    """One run from a folder of YAML and overrides, and its run folder."""
    composition = Composition.of(folder, overrides)
    return composition.run_config(), composition.run_folder
