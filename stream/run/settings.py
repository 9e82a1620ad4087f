"""A run's settings, composed from conf/ and overrides, with every learner, source and tracker."""

from collections.abc import Sequence
from pathlib import Path

from stream.config.compose import compose_run, register
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.data.build import DATA
from stream.learners import LEARNERS
from stream.report.tracking import TRACKERS


def register_groups() -> None:
    """Make the names of learners, data sources and trackers known to Hydra."""
    register({"learner": LEARNERS, "data": DATA, "tracking": TRACKERS})


def compose_settings(overrides: Sequence[str]) -> tuple[RunConfig, Path]:
    """Compose one run from conf/ and overrides; return its settings and its run folder.

    Raises:
        UserError: an unknown name, option or value, with the valid choices.
    """
    register_groups()
    return compose_run(conf_folder(), overrides)
