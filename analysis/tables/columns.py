"""The columns of a comparison: what each reads from a run's record, and how it shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.runs.collect import RecordedRun
from analysis.runs.values import Value, elapsed_s, metric, total_multiple, trained_fraction
from analysis.tables.references import REFERENCE_METRICS, References
from stream.formatting import DASH, TIMES, percent


@dataclass(frozen=True)
class Column:
    """One value of a run.

    Attributes:
        name: its key in JSON.
        header: newlines part its lines.
        read: reads it from a record.
        show: writes it into a cell.
    """

    name: str
    header: str
    read: Value
    show: Callable[[float | None], str] = percent


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
OF_SEEN_CLASSES = (
    Column("seen_class_accuracy", "all classes\nseen %", metric("seen_class_accuracy")),
    Column(
        "average_seen_class_accuracy",
        "its mean over\nthe stream %",
        metric("average_seen_class_accuracy"),
    ),
)
COSTS = (
    Column("trained_fraction", "trained\n%/task", trained_fraction, _percent_2),
    Column("total_multiple", f"total\n{TIMES} base", total_multiple, show_multiple),
    Column("elapsed_s", "time\ns", elapsed_s, show_seconds),
)
INFERRED = (
    Column("routed_average_score", "inferred\nscore %", metric("routed_average_score")),
    Column("routed_forgetting", "its for-\ngetting %", metric("routed_forgetting")),
    Column("routing_accuracy", "routed\nright %", metric("routing_accuracy")),
)
"""Of runs that infer the task of a text."""
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
        Column(name, header, references.reader(name)) for name, header in REFERENCE_HEADERS.items()
    ]
    return [*SCORES, *OF_SEEN_CLASSES, *COSTS, *INFERRED, *against]


def columns_of(runs: Sequence[RecordedRun], references: References) -> list[Column]:
    """The columns of these runs: beside scores and costs, those that a run has a value of."""
    always = (*SCORES, *COSTS)
    return [
        column
        for column in all_columns(references)
        if column in always or any(column.read(run.record) is not None for run in runs)
    ]
