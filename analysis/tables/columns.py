"""The columns of a comparison: what each reads from a run's record, and how it shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.runs.collect import RecordedRun
from analysis.runs.values import (
    Value,
    elapsed_s,
    metric,
    relative_steps,
    total_multiple,
    trained_fraction,
)
from analysis.tables.references import REFERENCE_METRICS, References
from stream.formatting import DASH, TIMES, percent

Values = Sequence[float | None]


def always(values: Values) -> bool:
    """Whatever the runs' values are."""
    return True


def any_known(values: Values) -> bool:
    """Whether a run has a value."""
    return any(value is not None for value in values)


def differ(values: Values) -> bool:
    """Whether the runs' values, as far as known, differ."""
    return len({round(value, 2) for value in values if value is not None}) > 1


@dataclass(frozen=True)
class Column:
    """One value of a run.

    Attributes:
        name: its key in JSON.
        header: newlines part its lines.
        read: reads it from a record.
        show: writes it into a cell.
        appears: whether a table of runs with these values has the column.
    """

    name: str
    header: str
    read: Value
    show: Callable[[float | None], str] = percent
    appears: Callable[[Values], bool] = always


def show_multiple(value: float | None) -> str:
    """A multiple of the base model's parameters."""
    return DASH if value is None else f"{value:.2f}"


def show_seconds(value: float | None) -> str:
    """Seconds, the tenths only of small ones."""
    return DASH if value is None else f"{value:.{1 if value < 10 else 0}f}"


def _percent_2(value: float | None) -> str:
    return percent(value, 2)


SCORES = (
    Column("average_score", "average\nscore %", metric("average_score")),
    Column("learning_score", "learning\nscore %", metric("learning_score")),
    Column("bwt", "BWT\n%", metric("bwt")),
    Column("forgetting", "forget-\nting %", metric("forgetting")),
)
COSTS = (
    Column("trained_fraction", "trained\n%/task", trained_fraction, _percent_2),
    Column("total_multiple", f"total\n{TIMES} base", total_multiple, show_multiple),
    Column("relative_steps", f"steps\n{TIMES} plain", relative_steps, show_multiple, differ),
    Column("elapsed_s", "time\ns", elapsed_s, show_seconds),
)
REFERENCE_HEADERS = dict(
    zip(
        REFERENCE_METRICS,
        (
            "normal-\nized %",
            "gap to\njoint %",
            "gap to\nindependent %",
            "intran-\nsigence %",
            "intransigence\njoint_final %",
            "FWT_ind\n%",
        ),
        strict=True,
    )
)


def all_columns(references: References) -> list[Column]:
    """Every column that there can be, in order."""
    against = [
        Column(name, header, references.reader(name), appears=any_known)
        for name, header in REFERENCE_HEADERS.items()
    ]
    return [*SCORES, *COSTS, *against]


def columns_of(runs: Sequence[RecordedRun], references: References) -> list[Column]:
    """The columns of these runs, without those that would say nothing of them."""
    return [
        column
        for column in all_columns(references)
        if column.appears([column.read(run.record) for run in runs])
    ]
