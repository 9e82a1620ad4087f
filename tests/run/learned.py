"""A whole tiny run in the process of a test: for tests of what a run leaves, not of its process."""

from pathlib import Path

import pytest

from stream.api import run_stream
from tests.blank_figures import use_blank_figures

TINY = ("experiment=smoke", "device=cpu")


def learned(folder: Path, *overrides: str) -> Path:
    """Make a run on a tiny encoder, with blank figures; return its folder, which is new."""
    with pytest.MonkeyPatch.context() as patch:
        use_blank_figures(patch)
        run_stream(folder=folder, overrides=[*TINY, *overrides], quiet=True)
    return folder
