"""A whole tiny run in the process of a test: for tests of what a run leaves, not of its process."""

import io
import sys
from contextlib import chdir, redirect_stderr
from pathlib import Path

import pytest

from stream.api import run_stream
from stream.cli.run import main
from tests.blank_figures import use_blank_figures

TINY = ("experiment=smoke", "device=cpu")


def learned(folder: Path, *overrides: str) -> Path:
    """Make a run on a tiny encoder, with blank figures; return its folder, which is new."""
    with pytest.MonkeyPatch.context() as patch:
        use_blank_figures(patch)
        run_stream(folder=folder, overrides=[*TINY, *overrides], quiet=True)
    return folder


def refused(folder: Path, *arguments: str) -> str:
    """Start a run in a folder as the command does; it is refused in one line, which is returned."""
    with (
        pytest.MonkeyPatch.context() as patch,
        chdir(folder),
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr(sys, "argv", ["run_stream.py", *arguments])
        patch.setattr(sys, "stdout", sys.stdout)  # to be put back
        patch.setenv("HYDRA_FULL_ERROR", "1")  # set by it, and here to be undone
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    assert ended.value.code == 2
    told = err.getvalue()
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    return told
