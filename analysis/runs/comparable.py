"""Which runs may stand side by side: those that saw the same tasks and data in the same order.

Where training rows are drawn (``limits.seed``), runs with another seed may have drawn others: that
is one more thing that varies from seed to seed. All runs of one seed have the same rows.
"""

from collections.abc import Sequence

from analysis.runs.collect import RecordedRun
from stream.errors import UserError
from stream.record.run_record import RunRecord


class IncomparableRunsError(UserError):
    """Runs of different streams, orders or data were to be put side by side."""


def check_comparable(runs: Sequence[RecordedRun]) -> None:
    """Raise `IncomparableRunsError`, naming the difference, unless all saw the same stream."""
    group = _Group(runs[0], any_order=False)
    for run in runs[1:]:
        if found := group.difference(run):
            other, difference = found
            raise IncomparableRunsError(
                f"these runs cannot be compared: {other.path} and {run.path} differ in {difference}"
            )
        group.add(run)


class _Group:
    """Runs of one stream.

    Args:
        first: the first of them.
        any_order: the same tasks and data in different orders are one stream.
    """

    def __init__(self, first: RecordedRun, *, any_order: bool) -> None:
        self.members = [first]
        self._any_order = any_order
        self._of_seed = {first.record.seed: first}

    def difference(self, run: RecordedRun) -> tuple[RecordedRun, str] | None:
        """Return a member whose stream is another one than a run's, and what differs."""
        for member in {id(m): m for m in (self.members[0], self._alike(run))}.values():
            found = stream_difference(member.record, run.record, any_order=self._any_order)
            if found:
                return member, found
        return None

    def _alike(self, run: RecordedRun) -> RecordedRun:
        """Return the first member with a run's seed, or the first of all."""
        return self._of_seed.get(run.record.seed, self.members[0])

    def add(self, run: RecordedRun) -> None:
        """Add a run of the same stream."""
        self.members.append(run)
        self._of_seed.setdefault(run.record.seed, run)


def largest_comparable(
    runs: Sequence[RecordedRun], *, any_order: bool = False
) -> tuple[list[RecordedRun], list[str]]:
    """Split runs into the largest group that saw one stream, and a line for each other run.

    Of groups of equal size the one that comes first is taken.

    Args:
        runs: at least one.
        any_order: the same tasks and data in different orders are one stream.
    """
    groups: list[_Group] = []
    for run in runs:
        group = next((group for group in groups if group.difference(run) is None), None)
        if group is None:
            groups.append(_Group(run, any_order=any_order))
        else:
            group.add(run)
    largest = max(groups, key=lambda group: len(group.members))  # the first of the longest
    chosen, lines = {id(run) for run in largest.members}, []
    for run in runs:
        if id(run) not in chosen and (found := largest.difference(run)):
            other, difference = found
            lines.append(f"left out: {run.path}: not the stream of {other.path}, {difference}")
    return largest.members, lines


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
    if one.data.hash != other.data.hash and not _drew_others(one, other):
        return f"data hash: {one.data.hash[:12]} and {other.data.hash[:12]}"
    return None


def _drew_others(one: RunRecord, other: RunRecord) -> bool:
    """Whether two runs with different seeds differ in which training rows were drawn, and no more.

    Args:
        one: a record.
        other: another record of the same tasks.
    """
    limits = [{**record.config.get("limits", {})} for record in (one, other)]
    draws = [limit.pop("seed", None) for limit in limits]
    held_out = [
        {
            task: {split: digest for split, digest in splits.items() if split != "train"}
            for task, splits in record.data.hashes.items()
        }
        for record in (one, other)
    ]
    return (
        one.seed != other.seed
        and draws[0] != draws[1]
        and limits[0] == limits[1]
        and one.data.rows == other.data.rows
        and held_out[0] == held_out[1]
        and bool(held_out[0])
    )
