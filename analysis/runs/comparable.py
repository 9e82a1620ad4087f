"""Which runs may stand side by side: those that saw the same tasks and data in the same order."""

from collections.abc import Sequence

from analysis.runs.collect import RecordedRun
from stream.errors import UserError
from stream.record.run_record import RunRecord


class IncomparableRunsError(UserError):
    """Runs of different streams, orders or data were to be put side by side."""


def check_comparable(runs: Sequence[RecordedRun]) -> None:
    """Raise `IncomparableRunsError`, naming the difference, unless all saw the same stream."""
    first = runs[0]
    for run in runs[1:]:
        difference = stream_difference(first.record, run.record)
        if difference:
            raise IncomparableRunsError(
                f"these runs cannot be compared: {first.path} and {run.path} differ in {difference}"
            )


def largest_comparable(
    runs: Sequence[RecordedRun], *, any_order: bool = False
) -> tuple[list[RecordedRun], list[str]]:
    """Split runs into the largest group that saw one stream, and a line for each other run.

    Of groups of equal size the one that comes first is taken.

    Args:
        runs: at least one.
        any_order: the same tasks and data in different orders are one stream.
    """
    groups: list[list[RecordedRun]] = []
    for run in runs:
        for members in groups:
            if not stream_difference(members[0].record, run.record, any_order=any_order):
                members.append(run)
                break
        else:
            groups.append([run])
    largest = max(groups, key=len)  # the first of the longest
    first, chosen = largest[0], {id(run) for run in largest}
    lines = []
    for run in runs:
        if id(run) not in chosen:
            difference = stream_difference(first.record, run.record, any_order=any_order)
            lines.append(f"left out: {run.path}: not the stream of {first.path}, {difference}")
    return largest, lines


def stream_difference(one: RunRecord, other: RunRecord, *, any_order: bool = False) -> str | None:
    """What differs between two runs' streams, with both values; None where nothing does.

    Args:
        one: a record.
        other: another record.
        any_order: whether the order of the tasks makes no difference.
    """
    pairs = {
        "stream": (one.stream, other.stream),
        "source": (one.source, other.source),
        "split": (one.split, other.split),
    }
    for name, (mine, theirs) in pairs.items():
        if mine != theirs:
            return f"{name}: {mine} and {theirs}"
    orders = [sorted(r.order) if any_order else r.order for r in (one, other)]
    what = "tasks" if any_order else "order"
    if len(orders[0]) != len(orders[1]):
        return f"{what}: {len(orders[0])} and {len(orders[1])} tasks"
    for number, names in enumerate(zip(*orders, strict=True), start=1):
        if names[0] != names[1]:
            return f"{what}: task {number} is {names[0]} and {names[1]}"
    if one.data.hash != other.data.hash:
        return f"data hash: {one.data.hash[:12]} and {other.data.hash[:12]}"
    return None
