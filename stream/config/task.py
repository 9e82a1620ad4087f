"""Settings: the YAML of a task, with its kind, labels and metric, and where its rows come from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from omegaconf import MISSING

from stream.config.setting import Settings, at_least, setting
from stream.errors import choose, require

SPLITS = ("train", "validation", "test")
PARQUET_SPLITS = {split: f"{split}.parquet" for split in SPLITS}
DROPPABLE = ("ragged", "unknown_label", "duplicate")
METRICS_OF = {  # by the kind of label: the valid metrics of a task
    "class": ("accuracy", "f1", "macro_f1", "matthews_correlation"),
    "score": ("spearman", "pearson"),
    "span": ("answer_f1", "exact_match"),
}
METRICS = tuple(metric for metrics in METRICS_OF.values() for metric in metrics)
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass
class DialectSpec(Settings):
    r"""How a text file is written; whatever is null is detected and printed.

    Attributes:
        encoding: such as ``utf-8``, ``utf-16``, ``cp1252``.
        delimiter: one or more characters, or ``tab``, ``pipe``, ``semicolon``, ``comma`` or
            ``space``.
        quoting: false if quote characters are text, true if they enclose fields.
        header: false if the first line is a row; columns are then column_1, column_2, ...
        quote: the character that encloses fields, ``"`` if only ``quoting`` is true; inside of
            them it is doubled or escaped.
        escape: the character that makes a following quote, delimiter or line end text, such as
            ``\``; before anything else it is text itself.
        skip: how many lines stand above the table.
        comment: lines that begin with this text are no rows, such as ``#``.
        null_value: a value that stands for no value, such as ``\N``.
    """

    GROUP: ClassVar[str] = "dialect"

    encoding: str | None = None
    delimiter: str | None = None
    quoting: bool | None = None
    header: bool | None = None
    quote: str | None = None
    escape: str | None = None
    skip: int | None = setting(None, at_least(0))
    comment: str | None = None
    null_value: str | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless each is usable, and they fit each other."""
        super().__post_init__()
        for name in ("quote", "escape"):
            char = getattr(self, name)
            require(
                char is None or (len(char) == 1 and char.isascii() and char not in "\r\n\0"),
                f"dialect.{name} must be one ASCII character that ends no line, got {char!r}",
            )
        require(
            self.quote is None or self.quoting is not False,
            f"dialect.quote={self.quote!r} has no effect with dialect.quoting=false",
        )
        given = [c for c in (self.delimiter, self.quote, self.escape) if c is not None]
        require(
            len(set(given)) == len(given),
            f"dialect: delimiter, quote and escape must differ, got {given}",
        )
        require(
            self.comment is None or (bool(self.comment) and not set(self.comment) & set("\r\n")),
            f"dialect.comment must be text of one line, got {self.comment!r}",
        )


@dataclass
class SourceColumns(Settings):
    """What a source's columns mean.

    Attributes:
        numbers_are_indices: whether a number that ``values`` does not map is an index into the
            labels; not on the hub, where copies of a data set number labels differently.
        text: the text column, or the two columns of a pair in reading order.
        label: the label column; a ``*`` stands for the rest of a long name. In a span task, the
            column with the texts of the answers.
        start: in a span task, the column with the first character of each answer.
        values: source value -> label name, where they differ (``*`` as above).
        exclude: label values whose rows are dropped on purpose, such as "not sure".
        drop: which rows may be dropped instead of causing an error (`DROPPABLE`).
        group: when splits are made, rows with the same value in this column stay in one split.
        rows: the expected number of rows in each part of the source.
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
        """Check the values. Raises UserError unless ``drop`` and ``values`` are valid."""
        super().__post_init__()
        for reason in self.drop:
            choose("drop reason", reason, DROPPABLE)
        _check_texts("values", self.values)


def _check_texts(what: str, texts: Mapping[str, object]) -> None:
    """Raise UserError unless all values are strings; omegaconf accepts an empty mapping."""
    odd = [f"{name}: {value}" for name, value in texts.items() if not isinstance(value, str)]
    require(not odd, f"{what} must be texts, got {', '.join(odd)}")


@dataclass
class FilesSource(SourceColumns):
    """The files of the task: ``data.root``/``folder``/pattern.

    Attributes:
        folder: a folder below ``data.root``, or an absolute path.
        splits: one pattern per split, or one for ``all``; empty means `PARQUET_SPLITS`. (The
            default is empty because Hydra merges a YAML's keys with those of the default.)
        dialect: how delimited text is written.
    """

    folder: str = "."
    splits: dict[str, str] = field(default_factory=dict)
    dialect: DialectSpec = field(default_factory=DialectSpec)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every split has a pattern."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class HubSource(SourceColumns):
    """The task on the Hugging Face hub.

    Attributes:
        id: the data set, such as ``nyu-mll/glue``; null if it is not on the hub.
        config: the configuration of the data set.
        revision: null is the main branch, whose commit is recorded at the first load; use
            ``refs/convert/parquet`` if main is a loading script.
        splits: split -> name of the split on the hub. Missing splits are taken from train.
        missing: why there is no id, and what to do instead.
    """

    numbers_are_indices: ClassVar[bool] = False

    id: str | None = None
    config: str | None = None
    revision: str | None = None
    splits: dict[str, str] = field(default_factory=dict)
    missing: str | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every split has a name on the hub."""
        super().__post_init__()
        _check_texts("splits", self.splits)


@dataclass
class GeneratedText(Settings):
    """How the generated version of a task looks.

    Attributes:
        words: the mean number of words per text.
        pool: tasks with the same pool share their texts; null shares none.
    """

    GROUP: ClassVar[str] = "generated"

    words: int = setting(12, at_least(1))
    pool: str | None = None


@dataclass
class TaskSpec(Settings):
    """The specification of a task, as in its YAML.

    Attributes:
        title: the name in tables and figures.
        kind: ``single`` or ``pair`` (one or two texts per row), or ``span`` (a question, and a
            context that contains the answer).
        labels: the names of the classes, in the order of the outputs; null for regression and for
            span tasks.
        score_range: the lowest and highest score of a regression task; null for other tasks.
        metric: the task's own metric: one of `METRICS_OF` its kind of label, or the import path of
            a function of one's own, ``module:name`` (`stream.evaluation.task_metrics`).
        more_metrics: metrics that are recorded beside it.
        version: raised when a change makes scores incomparable.
        source: where the data come from, for people.
        files: the task for ``data=files``.
        original: the task for ``data=files`` in the form in which it was published; used if the
            folder of ``files`` does not exist.
        hub: the task for ``data=hub``.
        generated: the task for ``data=generated``.
    """

    GROUP: ClassVar[str] = "task"

    title: str = MISSING
    kind: str = setting(MISSING, ("single", "pair", "span"))
    labels: list[str] | None = None
    score_range: list[float] | None = None
    metric: str = MISSING
    more_metrics: list[str] = field(default_factory=list)
    version: int = setting(1, at_least(0))
    source: str = MISSING
    files: FilesSource = field(default_factory=FilesSource)
    original: FilesSource = field(default_factory=FilesSource)
    hub: HubSource = field(default_factory=HubSource)
    generated: GeneratedText = field(default_factory=GeneratedText)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError if the specification contradicts itself."""
        super().__post_init__()
        self._check_labels()
        self._check_metrics()
        expected = 1 if self.kind == "single" else 2
        for columns in (self.files, self.original, self.hub):
            require(
                len(columns.text) in (0, expected),
                f"task {self.title!r}: a {self.kind} task has {expected} text column(s), "
                f"got {columns.text}",
            )
            require(
                not columns.text or (columns.start is not None) == (self.kind == "span"),
                f"task {self.title!r}: a span task needs start, the column of the answers' first "
                "characters; other tasks must not have it",
            )

    def _check_metrics(self) -> None:
        """Raise UserError unless the metrics fit the kind of label; nothing is imported."""
        valid = METRICS_OF[self.target]
        for metric in self.all_metrics:
            require(
                metric in valid or is_import_path(metric),
                f"task {self.title!r}: metric {metric} is not for labels of kind {self.target!r}. "
                f"Valid: {', '.join(valid)}, or the import path of a function (module:name)",
            )
        require(
            "f1" not in self.all_metrics or len(self.labels or ()) == 2,
            f"task {self.title!r}: f1 needs exactly two labels (it is the F1 of the second), "
            f"got {self.labels}",
        )
        distinct = len(set(self.all_metrics)) == len(self.all_metrics)
        require(distinct, f"task {self.title!r} names a metric twice: {self.all_metrics}")

    def _check_labels(self) -> None:
        """Raise UserError unless labels or score range are valid and fit the kind of the task."""
        given = (self.labels is not None) + (self.score_range is not None)
        require(
            given == (0 if self.kind == "span" else 1),
            f"task {self.title!r}: give exactly one of labels and score_range; a span task has "
            "neither",
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
    def all_metrics(self) -> list[str]:
        """The task's own metric, then those that are recorded beside it."""
        return [self.metric, *self.more_metrics]

    @property
    def needs_root(self) -> bool:
        """Whether ``data.root`` decides where the files of the task are."""
        forms = [self.files, *([self.original] if self.original.text else [])]
        return any(not Path(form.folder).is_absolute() for form in forms)

    @property
    def target(self) -> str:
        """The kind of label: ``class``, ``score`` or ``span``."""
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
        """The width K of the head: the number of classes, 1 for a score, 2 for a span."""
        return {"class": len(self.labels or ()), "score": 1, "span": 2}[self.target]


def is_import_path(metric: str) -> bool:
    """Return whether a metric is named by the import path of a function."""
    return IMPORT_PATH.fullmatch(metric) is not None
