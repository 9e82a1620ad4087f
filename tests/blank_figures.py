"""Runs without their pictures: half a second each, which tests of other things need not spend."""

import pytest
from matplotlib.figure import Figure

from stream.record.run_record import RunRecord
from stream.report import plots


def blank(record: RunRecord) -> Figure:
    """A figure of nothing."""
    del record
    return Figure(figsize=(1, 1))


def use_blank_figures(patch: pytest.MonkeyPatch) -> None:
    """Have runs in this process write their figures blank."""
    for name in plots.FIGURES:
        patch.setitem(plots.FIGURES, name, blank)
