"""What the name of a text's task gives away: adapters whose task is given, and inferred.

A run with inferred tasks scores each text both ways, so both are of the same weights.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.evidence.comparisons import apart, points
from benchmarks.evidence.plan import INFERRED
from benchmarks.evidence.quantities import GIVEN, by_task_and_seed, digests, routed, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect
from benchmarks.evidence.tables import left_out, metric
from benchmarks.markdown import spread, table
from stream.formatting import DASH, percent
from stream.record.run_record import RunRecord

METHOD = "adapter"


def inferred(records: Records) -> str:
    """Return what inferring the task costs, in all and task by task."""
    runs = records.five(INFERRED.name, METHOD)
    if not runs:
        return left_out([METHOD], INFERRED.name)
    return "\n\n".join([*_sentences(records, runs), by_task(runs)])


def _sentences(records: Records, runs: Sequence[RunRecord]) -> Iterator[str]:
    """Yield what all tasks together lose, and whether both groups learned the same."""
    known = by_task_and_seed([scores(run) for run in runs])
    served = by_task_and_seed([{t: r.score for t, r in routed(run).items()} for run in runs])
    given = "the same adapters with the task given"
    if len(runs) > 1:
        what = apart(Effect.of(served - known), given)
    else:
        what = f"{percent(float((known - served).mean()))} points below {given} (one seed)"
    yield (
        f"With the task inferred, adapters end {what}: at {metric(runs, 'routed_average_score')} "
        f"instead of {metric(runs, 'average_score')}. Of a task's texts, "
        f"{metric(runs, 'routing_accuracy')}% are given to it, mean over tasks."
    )
    main = records.seeds(GIVEN, METHOD)
    pairs = [(digests(run), digests(main[run.seed])) for run in runs if run.seed in main]
    same = [first[task] == second[task] for first, second in pairs for task in first]
    if same:
        yield (
            f"With the task given, {sum(same)} of {len(same)} times a task has the logits of the "
            "main group's run with this seed, bit for bit."
        )


def by_task(runs: Sequence[RunRecord]) -> str:
    """Return both scores of each task, and where its texts go."""

    def lines() -> Iterator[Sequence[str]]:
        for task, title in zip(runs[0].order, runs[0].titles, strict=True):
            known, found = [scores(run)[task] for run in runs], [routed(run)[task] for run in runs]
            served = [one.score for one in found]
            lost = points((sum(known) - sum(served)) / len(runs))
            right = spread([one.accuracy for one in found])
            yield title, spread(known), spread(served), lost, right, _mistaken(runs, task)

    header = (
        *("task", "score, task given", "score, task inferred", "points lost"),
        *("its texts given to it (%)", "most of the others go to (% of its texts)"),
    )
    return table(header, lines())


def _mistaken(runs: Sequence[RunRecord], task: str) -> str:
    """Return the task that gets most of the texts of another one, with its share of all its texts.

    Of equal ones it is the first in the stream.
    """
    counted, titles = Counter[str](), dict(zip(runs[0].order, runs[0].titles, strict=True))
    for run in runs:
        counted.update(dict(zip(run.order, routed(run)[task].counts, strict=True)))
    total = counted.total()
    del counted[task]
    other = max(counted, key=lambda name: counted[name])
    share = counted[other] / total
    return f"{titles[other]} ({percent(share)})" if share else DASH
