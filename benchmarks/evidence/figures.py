"""Figures of the comparison, and the report, from its records.

Methods that choose for each task are left out: in a figure they have the name of their learner.
"""

from pathlib import Path

import msgspec

from analysis.figures.write import TOGETHER
from analysis.report.write import write_report
from analysis.runs.collect import RecordedRun
from benchmarks.evidence.methods import METHODS
from benchmarks.evidence.plan import SEEDS
from benchmarks.evidence.quantities import GIVEN
from benchmarks.evidence.records import RUNS, Records
from benchmarks.evidence.tables import HEADLINE
from stream.report.canvas import save

FIGURES = ("average", "forgetting_map", "parameters")
ALONG = (*HEADLINE, "frozen")
"""The methods of the figure along the stream, where more lines would hide each other."""
REPORT = "report.html"


def drawn_runs(records: Records) -> list[RecordedRun]:
    """Return the runs in the given order, one setting for all tasks.

    A seed draws training rows of its own, so the data of two seeds differ. Here they are the same
    on purpose, so that runs with other seeds repeat a method: they get the first one's hash.
    """
    found, same = [], ""
    for method in [method for method in METHODS if not method.choice]:
        for seed, run in sorted(records.seeds(GIVEN, method.name).items()):
            if seed not in SEEDS:
                continue
            same = same or run.data.hash
            data = msgspec.structs.replace(run.data, hash=same)
            path = records.out / RUNS / GIVEN / f"{method.name}-s{seed}"
            found.append(RecordedRun(path, msgspec.structs.replace(run, data=data)))
    return found


def draw(records: Records, folder: Path) -> None:
    """Write every figure as PNG, and the report.

    Args:
        records: all of them.
        folder: where to.
    """
    runs = drawn_runs(records)
    if not runs:
        return
    few = [run for run in runs if run.record.learner in ALONG]
    for name in FIGURES:
        save(TOGETHER[name](few if name == "average" else runs), folder, name, ("png",))
    write_report(runs, [], folder / REPORT)
