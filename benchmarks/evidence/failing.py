"""Why training of adapters fails on MPNet: tasks on which it did, with one thing changed."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from benchmarks.evidence.comparisons import points
from benchmarks.evidence.methods import CHANGED
from benchmarks.evidence.plan import FAILING, MPNET
from benchmarks.evidence.quantities import at_majority, mean_scores, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.tables import left_out
from benchmarks.markdown import spread, table
from stream.formatting import DASH
from stream.record.run_record import RunRecord

CHANGES = dict(
    zip(
        (method.name for method in CHANGED),
        (
            "nothing: the rate that the search chose, 0.001",
            "half the rate, 0.0005",
            "warm-up over 30% of the steps, not 10%",
            "a text's vector is the mean of its tokens",
        ),
        strict=True,
    )
)
"""What is changed, by method; the first is what the others are held against."""
AS_CHOSEN = CHANGED[0].name
Runs = Mapping[int, RunRecord]
Lost = Mapping[str, Sequence[int]]
"""The seeds with which tasks failed, by task."""


def failing(records: Records) -> str:
    """Return how many trainings fail with each change, and what it costs where none does."""
    found = {name: records.seeds(FAILING.name, name) for name in CHANGES}
    whole = mean_scores([*records.seeds(MPNET.name, "independent").values()])
    lacking = [name for name, runs in found.items() if not runs]
    if lacking or not whole:
        return left_out(lacking or [*CHANGES], FAILING.name)
    lost = {name: at_majority(runs, whole) for name, runs in found.items()}

    def lines() -> Iterator[Sequence[str]]:
        for name, change in CHANGES.items():
            runs = found[name]
            number = sum(map(len, lost[name].values()))
            pairs = sum(len(run.order) for run in runs.values())
            ends = spread([mean(scores(run).values()) for run in runs.values()])
            apart = _apart(runs, found[AS_CHOSEN], [lost[name], lost[AS_CHOSEN]])
            yield change, f"{number} of {pairs}", ends, DASH if name == AS_CHOSEN else apart

    header = "what is changed,trainings that fail,score at the end,difference where neither fails"
    return table(header, lines())


def _apart(runs: Runs, others: Runs, lost: Sequence[Lost]) -> str:
    """Return the mean difference over pairs of task and seed where neither failed; their number."""
    kept = [
        score - scores(others[seed])[task]
        for seed, run in runs.items()
        if seed in others
        for task, score in scores(run).items()
        if not any(seed in seeds.get(task, ()) for seeds in lost)
    ]
    return f"{points(mean(kept))} ({len(kept)} pairs)"
