"""Figures of the comparison, from its records.

Methods that choose for each task are left out: in a figure they have the name of their learner.
"""

from pathlib import Path

from analysis.figures.write import TOGETHER
from analysis.runs.collect import RecordedRun
from benchmarks.evidence.methods import METHODS
from benchmarks.evidence.plan import SEEDS
from benchmarks.evidence.quantities import GIVEN
from benchmarks.evidence.records import RUNS, Records
from benchmarks.evidence.tables import HEADLINE
from benchmarks.evidence.tradeoff import tradeoff_figure
from stream.report.canvas import save

FIGURES = ("average", "forgetting_map", "parameters")
ALONG = (*HEADLINE, "frozen")
"""The methods of the figure along the stream, where more lines would hide each other."""


def drawn_runs(records: Records) -> list[RecordedRun]:
    """Return the runs in the given order, one setting for all tasks."""
    return [
        RecordedRun(records.out / RUNS / GIVEN / f"{method.name}-s{seed}", run)
        for method in METHODS
        if not method.choice
        for seed, run in sorted(records.seeds(GIVEN, method.name).items())
        if seed in SEEDS
    ]


def draw(records: Records, folder: Path) -> None:
    """Write every figure as PNG.

    Args:
        records: all of them.
        folder: where to.
    """
    against_size = tradeoff_figure(records)
    if against_size is not None:
        save(against_size, folder, "tradeoff", ("png",))
    runs = drawn_runs(records)
    if not runs:
        return
    few = [run for run in runs if run.record.learner in ALONG]
    for name in FIGURES:
        save(TOGETHER[name](few if name == "average" else runs), folder, name, ("png",))
