"""How much of the memory of runs is perfect, in words."""

from collections.abc import Iterable, Sequence

from stream.formatting import DASH
from stream.record.run_record import RunRecord


def is_broken(record: RunRecord) -> bool:
    """Whether perfect memory was promised, and logits of an earlier task changed."""
    memory = record.memory
    return memory.promised and memory.tasks_identical < memory.tasks_checked


def memory_text(records: Sequence[RunRecord]) -> str:
    """Earlier tasks whose last logits are bit for bit the first, of those checked; least to most.

    A run of 26 tasks has 25 earlier ones, however many seeds there are: "25 of 25".

    Args:
        records: of one run, or of all runs that are averaged.
    """
    if len(records[0].order) == 1:
        return "nothing to forget: one task"
    if not any(record.memory.tasks_checked for record in records):
        return DASH
    identical = _range(record.memory.tasks_identical for record in records)
    checked = _range(record.memory.tasks_checked for record in records)
    return f"{identical} of {checked}" + " BROKEN" * any(map(is_broken, records))


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
