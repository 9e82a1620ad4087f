"""The rows of a record: what learning one task added to it, as a line of ``rows.jsonl``.

A row has its measured cells alone. Where an equal fingerprint proved an equal score, it names the
positions of the tasks whose newest cell still holds, so that a row costs the same early and late.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from stream.errors import UserError, first_line
from stream.metrics.within_task import ProbePoint
from stream.record.ledger import LedgerRow
from stream.record.matrix import Cell
from stream.record.parts import TimeTotals
from stream.record.selection import SelectionRecord

if TYPE_CHECKING:
    from stream.record.run_record import RunRecord


class RowTimes(msgspec.Struct, kw_only=True):
    """Seconds, examples and steps of the task, as in `TaskTimes`; None in rows of old records."""

    train_s: float | None
    evaluate_s: float | None
    train_examples: int | None
    evaluate_examples: int | None
    steps: int | None


TIMES = RowTimes.__struct_fields__


class RowProbe(msgspec.Struct, kw_only=True):
    """What the probe saw while the task was learned, and its seconds in the run so far."""

    seconds: float
    points: list[ProbePoint] = []


class RowLinearProbe(msgspec.Struct, kw_only=True):
    """The score of a head trained anew, of all tasks if it was the last, and seconds so far."""

    learned: float | None
    final: list[float | None] = []
    seconds: float


class RowRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One learned task; a key that is absent has nothing to say.

    Attributes:
        task: its name; rows come in the order of the stream.
        measured: cells of the row that were evaluated, by task.
        reused: positions [from, to) of tasks whose newest cell above still holds.
        ledger: the account after the task.
        times: of this task.
        totals: of the run so far.
        losses: of every step.
        eager: why steps that should have been captured were not.
        fingerprints: those that are new or changed.
        flops: operations spent, of one pass over its rows, and passes.
        selection: with ``select``, what was tried and chosen.
        probe: scores within the task.
        linear_probe: scores of heads trained anew.
        route_s: seconds in which the router learned the task.
    """

    task: str
    measured: dict[str, Cell] = {}
    reused: list[tuple[int, int]] = []
    ledger: LedgerRow
    times: RowTimes
    totals: TimeTotals
    losses: list[float] | None = None
    eager: str = ""
    fingerprints: dict[str, str] = {}
    flops: tuple[int, int, int] | None = None
    selection: SelectionRecord | None = None
    probe: RowProbe | None = None
    linear_probe: RowLinearProbe | None = None
    route_s: float | None = None


class Unfinished(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a record shows of the task that is being learned, besides all rows.

    Attributes:
        totals: of the run so far.
        losses: of the best candidate so far.
        selection: the candidates so far.
        probe: scores within the task so far.
    """

    totals: TimeTotals
    losses: list[float] | None = None
    selection: SelectionRecord | None = None
    probe: RowProbe | None = None


def row_of(record: "RunRecord", index: int, fingerprints: Mapping[str, str]) -> RowRecord:
    """Return the row of task ``index``.

    Args:
        record: it holds the row.
        index: the task's position.
        fingerprints: those that no earlier row has as they are now.
    """
    name, times = record.order[index], record.timing.by_task
    flops, linear, routing = record.flops, record.linear_probe, record.routing
    last = index == len(record.order) - 1
    measured, reused = _cells(record, index)
    return RowRecord(
        task=name,
        measured=measured,
        reused=reused,
        ledger=record.ledger.tasks[index],
        times=RowTimes(**{key: _newest(getattr(times, key), record, index) for key in TIMES}),
        totals=record.timing.totals,
        losses=record.losses.get(name),
        eager=record.eager.get(name, ""),
        fingerprints=dict(fingerprints),
        flops=_entry(flops and (flops.train, flops.one_pass, flops.epochs), record, index),
        selection=record.selection.get(name),
        probe=_probed(record, index),
        linear_probe=None
        if linear is None
        else RowLinearProbe(
            learned=_newest(linear.learned, record, index),
            final=linear.final if last else [],
            seconds=linear.seconds,
        ),
        route_s=None if routing is None else _newest(routing.learn_s, record, index),
    )


def rows_of(record: "RunRecord") -> Iterator[RowRecord]:
    """Yield the rows of a whole record; its totals are those of every row."""
    for index, name in enumerate(record.order[: len(record.ledger.tasks)]):
        own = {name: record.fingerprints[name]} if name in record.fingerprints else {}
        yield row_of(record, index, own)


def unfinished_of(record: "RunRecord") -> Unfinished:
    """Return what a record shows of the task after its last row."""
    done = len(record.ledger.tasks)
    name = record.order[done] if done < len(record.order) else None
    return Unfinished(
        totals=record.timing.totals,
        losses=record.losses.get(name) if name else None,
        selection=record.selection.get(name) if name else None,
        probe=_probed(record, done),
    )


def add_rows(record: "RunRecord", rows: Iterable[RowRecord]) -> None:
    """Add rows to a record that holds those before them; nothing is derived.

    Raises:
        ValueError: they are not the next rows of this record.
    """
    places = {name: place for place, name in enumerate(record.order)}
    for row in rows:
        _add(record, row, places)


def add_unfinished(record: "RunRecord", found: Unfinished) -> None:
    """Add what was shown of the task after the last row."""
    record.timing.now(found.totals)
    done = len(record.ledger.tasks)
    if done == len(record.order):
        return
    _add_learned(record, record.order[done], found)
    _add_probe(record, done, found.probe)


def decoded(lines: Sequence[bytes], where: object) -> list[RowRecord]:
    """Return the rows that lines of ``rows.jsonl`` hold.

    Raises:
        UserError: one of them is no row; ``where`` says what holds them.
    """
    try:
        return [_decoder.decode(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} holds no rows of a run: {first_line(error)}") from error


_decoder = msgspec.json.Decoder(RowRecord)


def _cells(record: "RunRecord", index: int) -> tuple[dict[str, Cell], list[tuple[int, int]]]:
    """Return a row's measured cells, and the ranges of those that are reused."""
    matrix, measured = record.score_matrix, {}
    reused: list[tuple[int, int]] = []
    before = record.cells[index - 1] if index else record.cells[index]
    for on, cell in enumerate(record.cells[index]):
        if cell is None:
            continue
        held = index > 0 and cell is before[on]  # one object, as nearly all are: no search
        if not held and not cell.reuses(matrix.above(index, on)):
            measured[record.order[on]] = cell
        elif reused and reused[-1][1] == on:
            reused[-1] = (reused[-1][0], on + 1)
        else:
            reused.append((on, on + 1))
    return measured, reused


def _newest(values: Sequence[Any], record: "RunRecord", index: int) -> Any:
    """Return a task's entry of a list that may lack the first tasks; None if it lacks this one.

    What a run was asked for only when it went on has no entry for the tasks before.
    """
    place = index - len(record.ledger.tasks)
    return values[place] if -len(values) <= place < 0 else None


def _entry(
    lists: tuple[list[int], list[int], list[int]] | None, record: "RunRecord", index: int
) -> tuple[int, int, int] | None:
    """Return a task's operations; None where they were not counted."""
    if lists is None:
        return None
    train, one_pass, epochs = (_newest(values, record, index) for values in lists)
    return None if train is None else (train, one_pass, epochs)


def _probed(record: "RunRecord", index: int) -> RowProbe | None:
    """Return what the probe saw while a task was learned: the end of all points, or near it."""
    if record.probe is None:
        return None
    points: list[ProbePoint] = []
    for point in reversed(record.probe.points):
        if point.task < index:
            break
        if point.task == index:
            points.append(point)
    return RowProbe(seconds=record.probe.seconds, points=points[::-1])


def _add(record: "RunRecord", row: RowRecord, places: Mapping[str, int]) -> None:
    """Add the next row to a record."""
    index = len(record.ledger.tasks)
    if index >= len(record.order) or record.order[index] != row.task:
        raise ValueError(f"{row.task!r} is not task {index + 1} of this run")
    _add_cells(record, index, row, places)
    record.ledger.tasks.append(row.ledger)
    record.ledger.total_multiple = row.ledger.stored_parameters / record.ledger.base_parameters
    for key in TIMES:
        if (value := getattr(row.times, key)) is not None:
            getattr(record.timing.by_task, key).append(value)
    record.timing.now(row.totals)
    record.fingerprints |= row.fingerprints
    if row.eager:
        record.eager[row.task] = row.eager
    _add_learned(record, row.task, row)
    _add_probe(record, index, row.probe)
    _add_optional(record, row)


def _add_learned(record: "RunRecord", name: str, found: RowRecord | Unfinished) -> None:
    """Add losses, and what was chosen."""
    if found.losses is not None:
        record.losses[name] = found.losses
    if found.selection is not None:
        record.selection[name] = found.selection


def _add_optional(record: "RunRecord", row: RowRecord) -> None:
    """Add what the record is asked to hold of operations, heads trained anew and routing."""
    if record.flops is not None and row.flops is not None:
        record.flops.add(*row.flops)
    if record.linear_probe is not None and row.linear_probe is not None:
        record.linear_probe.learned.append(row.linear_probe.learned)
        record.linear_probe.final = row.linear_probe.final or record.linear_probe.final
        record.linear_probe.seconds = row.linear_probe.seconds
    if record.routing is not None and row.route_s is not None:
        record.routing.learn_s.append(row.route_s)


def _add_cells(record: "RunRecord", index: int, row: RowRecord, places: Mapping[str, int]) -> None:
    """Fill a row of cells."""
    matrix = record.score_matrix
    for name, cell in row.measured.items():
        if name not in places:
            raise ValueError(f"row {index + 1} has a score of {name!r}, which is no task here")
        record.cells[index][places[name]] = cell
    for start, stop in row.reused:
        for on in range(start, stop):
            above = matrix.above(index, on) if on < len(record.order) else None
            if above is None:
                raise ValueError(f"row {index + 1} reuses a score of task {on + 1}, which has none")
            record.cells[index][on] = above.reused()


def _add_probe(record: "RunRecord", index: int, found: RowProbe | None) -> None:
    """Add what the probe saw while a task was learned, instead of what is known of it."""
    if record.probe is None or found is None:
        return
    points = record.probe.points
    while points and points[-1].task >= index:
        points.pop()
    points += found.points
    record.probe.seconds = found.seconds
