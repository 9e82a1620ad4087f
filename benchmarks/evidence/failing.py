"""Why training of adapters fails on MPNet: tasks on which it did, with one thing changed."""

from collections.abc import Iterator, Sequence
from statistics import mean

from benchmarks.evidence.comparisons import points
from benchmarks.evidence.methods import CHANGED
from benchmarks.evidence.plan import FAILING, MPNET
from benchmarks.evidence.quantities import (
    at_majority,
    counted,
    mean_scores,
    scores,
    where_neither_failed,
)
from benchmarks.evidence.records import Records
from benchmarks.evidence.tables import left_out
from benchmarks.markdown import spread, table
from stream.formatting import DASH


def failing(records: Records) -> str:
    """Return how many trainings fail with each change, and what it costs where none does."""
    found = {change: records.seeds(FAILING.name, method.name) for change, method in CHANGED.items()}
    whole = mean_scores([*records.seeds(MPNET.name, "independent").values()])
    lacking = [CHANGED[change].name for change, runs in found.items() if not (runs and whole)]
    if lacking:
        return left_out(lacking, FAILING.name)
    lost = {change: at_majority(runs, whole) for change, runs in found.items()}
    unchanged = next(iter(CHANGED))

    def lines() -> Iterator[Sequence[str]]:
        for change, runs in found.items():
            number, pairs = counted(runs, lost[change])
            ends = spread([mean(scores(run).values()) for run in runs.values()])
            both, failed = [runs, found[unchanged]], [lost[change], lost[unchanged]]
            apart = where_neither_failed(both, failed)
            told = DASH if change == unchanged else f"{points(mean(apart))} ({len(apart)} pairs)"
            yield change, f"{number} of {pairs}", ends, told

    header = "what is changed,trainings that fail,score at the end,difference where neither fails"
    return table(header, lines())
