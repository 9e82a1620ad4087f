"""What a task's YAML states: its kind, labels and metric, and where its rows come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from omegaconf import MISSING

from stream.errors import choose, require

SPLITS = ("train", "validation", "test")
PARQUET_SPLITS = {split: f"{split}.parquet" for split in SPLITS}
DROPPABLE = ("ragged", "unknown_label", "duplicate")
METRICS_OF = {  # what a label is: how predictions are judged
    "class": ("accuracy", "f1", "matthews_correlation"),
    "score": ("spearman",),
    "span": ("answer_f1", "exact_match"),
}
METRICS = tuple(metric for metrics in METRICS_OF.values() for metric in metrics)


@dataclass
class DialectSpec:
    """How a delimited text file is read; null is detected and printed.

    Attributes:
        encoding: such as ``utf-8``, ``utf-16``, ``cp1252``.
        delimiter: one character.
        quoting: false where quote characters are text.
        header: false where the first line is a row; columns are column_1, column_2, ...
    """

    encoding: str | None = None
    delimiter: str | None = None
    quoting: bool | None = None
    header: bool | None = None


@dataclass
class SourceColumns:
    """What a source's columns mean.

    Attributes:
        text: the text column, or both of a pair in reading order.
        label: the label column; ``*`` stands for the rest of a long name. Of a span task, that of
            the answers' texts.
        start: of a span task, the column of the answers' first characters.
        values: source value -> label name, where they differ (``*`` as above). Numbers that are
            not mapped are indices, but on the hub, where copies number labels differently.
        exclude: label values whose rows are left out on purpose, such as "not sure".
        drop: what may be dropped instead of being an error (`DROPPABLE`).
        group: column whose rows stay in one split where splits are carved.
        rows: expected number of rows by part of the source.
    """

    numbers_are_indices: ClassVar[bool] = True

    text: list[str] = field(default_factory=list)
    label: str = "label"
    start: str | None = None
    values: dict[str, str] = field(default_factory=dict)
    exclude: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    group: str | None = None
    rows: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse reasons that do not exist."""
        for reason in self.drop:
            choose("drop reason", reason, DROPPABLE)
        _check_texts("values", self.values)


def _check_texts(what: str, texts: Mapping[str, object]) -> None:
    """Refuse values that are no text; omegaconf lets empty mappings pass."""
    odd = [f"{name}: {value}" for name, value in texts.items() if not isinstance(value, str)]
    require(not odd, f"{what} must be texts, got {', '.join(odd)}")


@dataclass
class FilesSource(SourceColumns):
    """The task's files: ``data.root``/``folder``/pattern.

    Attributes:
        folder: below ``data.root``, or absolute.
        splits: a pattern a split, or one for ``all``; none means `PARQUET_SPLITS`. (The default is
            empty because Hydra adds a YAML's keys to a default's instead of replacing them.)
        dialect: how delimited text is read.
    """

    folder: str = "."
    splits: dict[str, str] = field(default_factory=dict)
    dialect: DialectSpec = field(default_factory=DialectSpec)

    def __post_init__(self) -> None:
        """Refuse splits that are no patterns."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class HubSource(SourceColumns):
    """The task on the Hugging Face hub.

    Attributes:
        id: such as ``nyu-mll/glue``; null where none is known.
        config: the data set's configuration.
        revision: null is the main branch, resolved and recorded at the first load;
            ``refs/convert/parquet`` where main is a script.
        splits: our split -> the hub's. Splits that we lack are carved from train.
        missing: why there is no id, and how to go on.
    """

    numbers_are_indices: ClassVar[bool] = False

    id: str | None = None
    config: str | None = None
    revision: str | None = None
    splits: dict[str, str] = field(default_factory=dict)
    missing: str | None = None

    def __post_init__(self) -> None:
        """Refuse splits that have no name."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class GeneratedText:
    """How the generated twin of a task looks: words a text, and the pool of texts it shares."""

    words: int = 12
    pool: str | None = None


@dataclass
class TaskSpec:
    """One task as its YAML states it. ``labels`` null means regression on ``score_range``.

    The ``kind`` is ``single`` or ``pair``, the texts of a row, or ``span``: a question, and a
    context in which its answer stands. A span task has neither labels nor score_range.

    ``original`` is how the `files` source takes the task as it was published, where the files of
    ``files`` are not there.
    """

    title: str = MISSING
    kind: str = MISSING
    labels: list[str] | None = None
    score_range: list[float] | None = None
    metric: str = MISSING
    version: int = 1
    source: str = MISSING
    files: FilesSource = field(default_factory=FilesSource)
    original: FilesSource = field(default_factory=FilesSource)
    hub: HubSource = field(default_factory=HubSource)
    generated: GeneratedText = field(default_factory=GeneratedText)

    def __post_init__(self) -> None:
        """Refuse a contradictory specification."""
        choose("task kind", self.kind, ("single", "pair", "span"))
        choose("task metric", self.metric, METRICS)
        self._check_labels()
        metrics = METRICS_OF[self.target]
        require(
            self.metric in metrics,
            f"task {self.title!r}: {self.metric} does not judge a {self.target}, but "
            f"{', '.join(metrics)}",
        )
        require(
            self.metric != "f1" or len(self.labels or ()) == 2,
            f"task {self.title!r}: f1 is of the second of two labels, got {self.labels}",
        )
        expected = 1 if self.kind == "single" else 2
        for columns in (self.files, self.original, self.hub):
            require(
                len(columns.text) in (0, expected),
                f"task {self.title!r}: a {self.kind} task has {expected} text column(s), "
                f"got {columns.text}",
            )
            require(
                not columns.text or (columns.start is not None) == (self.kind == "span"),
                f"task {self.title!r}: start names a column of a span task, and only of one",
            )

    def _check_labels(self) -> None:
        """Refuse labels and ranges that are none, or none of this kind."""
        given = (self.labels is not None) + (self.score_range is not None)
        require(
            given == (0 if self.kind == "span" else 1),
            f"task {self.title!r}: give either labels or score_range, not both and not neither; "
            "a span task has none of them",
        )
        if self.labels is not None:
            distinct = len(set(self.labels))
            require(
                distinct == len(self.labels) >= 2,
                f"task {self.title!r}: needs at least two different labels, got {self.labels}",
            )
        if self.score_range is not None:
            low, high = self.score_range
            require(low < high, f"task {self.title!r}: score_range must rise, got {low}, {high}")

    @property
    def target(self) -> str:
        """What a row's label is: a ``class``, a ``score`` or a ``span``."""
        if self.kind == "span":
            return "span"
        return "score" if self.labels is None else "class"

    @property
    def valid_labels(self) -> str:
        """Which labels are valid, in words."""
        if self.target == "span":
            return "answers that stand at their places in the context"
        return ", ".join(map(repr, self.labels or [])) or f"a number in {self.score_range}"

    @property
    def num_outputs(self) -> int:
        """Width K of the task's head: its classes, 1 for regression, 2 for a span (its ends)."""
        return {"class": len(self.labels or ()), "score": 1, "span": 2}[self.target]
