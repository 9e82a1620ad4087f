"""Tables of some methods elsewhere: with another encoder, and with more rows."""

from collections.abc import Sequence
from statistics import mean

from benchmarks.evidence.comparisons import ONE_SETTING, PER_TASK, apart, points
from benchmarks.evidence.methods import BY_NAME
from benchmarks.evidence.plan import ELSEWHERE, LONG, MPNET, WITH_MPNET, Group
from benchmarks.evidence.quantities import GIVEN, failed, where_neither_failed
from benchmarks.evidence.records import Records
from benchmarks.evidence.search_tables import settings
from benchmarks.evidence.searches import chosen_for, kept_search
from benchmarks.evidence.tables import (
    identical,
    left_out,
    metric,
    named,
    normal,
    seconds,
    stored,
)
from benchmarks.markdown import table
from stream.formatting import DASH
from stream.tuning.grid import INSIDE

ONE_SETTING_OF_BOTH = (ONE_SETTING.method, ONE_SETTING.other)


def mpnet(records: Records) -> str:
    """Return what ran with MPNet."""
    parts = same_methods(records, MPNET, WITH_MPNET), where_training_worked(records)
    return "\n\n".join(filter(None, parts))


def where_training_worked(records: Records) -> str:
    """Return how adapters and whole models differ with MPNet where training of neither failed."""
    runs = [records.seeds(MPNET.name, method) for method in ONE_SETTING_OF_BOTH]
    lost = [failed(records, MPNET.name, method) for method in ONE_SETTING_OF_BOTH]
    kept = where_neither_failed(runs, lost)
    if not kept:
        return ""
    return (
        f"In the {len(kept)} (task, seed) pairs in which [training of neither failed]"
        f"(#which-tasks-fail), the mean difference is {points(mean(kept))} points."
    )


def more_rows(records: Records) -> str:
    """Return what ran with up to 20,000 rows a task."""
    return same_methods(records, LONG, ELSEWHERE)


def chosen(records: Records, group: Group, method: str) -> str:
    """Return what was chosen of a method in a group, and which of it lies at an end."""
    text = settings(chosen_for(records.out, group, BY_NAME[method]) or {})
    kept = kept_search(records.out, group.searches, method)
    ends = kept.found.ends if kept is not None else {}
    outside = [key for key, told in ends.items() if told != INSIDE]
    return f"{text}; at an end: {', '.join(outside)}" if outside else text


def same_methods(records: Records, group: Group, planned: Sequence[str]) -> str:
    """Return the methods of another group, the highest score first, and which were not run.

    Args:
        records: all of them.
        group: the group, which has searches of its own.
        planned: the methods that it is to have.
    """

    def line(method: str) -> Sequence[str]:
        runs, main = records.five(group.name, method), records.five(GIVEN, method)
        return (
            named(method),
            metric(runs, "average_score"),
            metric(main, "average_score") if main else DASH,
            normal(records, method, group.name),
            metric(runs, "learning_score"),
            metric(runs, "forgetting"),
            identical(runs),
            stored(runs),
            seconds(runs),
            chosen(records, group, method),
            str(len(runs)),
        )

    def place(method: str) -> float:
        return -mean(
            run.metrics["average_score"] or 0.0 for run in records.five(group.name, method)
        )

    there = sorted((name for name in planned if records.five(group.name, name)), key=place)
    header = (
        *("method", "score at the end", "in the main group", "normalized", "right after learning"),
        *("forgetting", "bit-identical", "stored (encoders)", "learning (s)", "chosen", "seeds"),
    )
    ways = (ONE_SETTING, ""), (PER_TASK, ", each rate chosen per task")
    effects = [(how, compared.effect(records, group.name)) for compared, how in ways]
    parts = [
        " ".join(
            f"Adapters end {apart(effect, 'a whole model per task')}{how}."
            for how, effect in effects
            if effect
        ),
        table(header, map(line, there)) if there else "",
        left_out([name for name in planned if name not in there], group.name),
    ]
    return "\n\n".join(filter(None, parts))
