"""Figures of the comparison, from its records.

Methods that choose for each task are left out: in a figure they have the name of their learner.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.figures.write import TOGETHER
from analysis.runs.collect import RecordedRun
from benchmarks.evidence.methods import METHODS, Method
from benchmarks.evidence.plan import SEEDS
from benchmarks.evidence.quantities import GIVEN
from benchmarks.evidence.records import RUNS, Records
from benchmarks.evidence.tables import HEADLINE
from benchmarks.evidence.tradeoff import tradeoff_figure
from stream.report.canvas import save

FIGURES: Mapping[str, Sequence[Method]] = {
    # more lines would hide each other, and that of `ia3` lies on that of adapters
    "average": [m for m in METHODS if m.name in (*HEADLINE, "frozen") and m.name != "ia3"],
    # what is isolated has rows of zeros; one shows that
    "forgetting_map": [m for m in METHODS if not m.isolated or m.name == "adapter"],
    # a front of some methods would say that nothing beats what others beat; the majority answer,
    # which trains and stores next to nothing, would leave all others a third of the axes
    "parameters": [m for m in METHODS if m.name != "majority"],
}
"""The methods of each figure."""


def drawn_runs(records: Records, methods: Sequence[Method] = METHODS) -> list[RecordedRun]:
    """Return the runs of methods in the given order, one setting for all tasks."""
    return [
        RecordedRun(records.out / RUNS / GIVEN / f"{method.name}-s{seed}", run)
        for method in methods
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
    for name, methods in FIGURES.items():
        if runs := drawn_runs(records, methods):
            save(TOGETHER[name](runs), folder, name, ("png",))
