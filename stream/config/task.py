"""Settings: the YAML of a task, with its texts, labels and metrics."""

import math
import re
from dataclasses import dataclass, field
from typing import ClassVar

from omegaconf import MISSING

from stream.config.cut import CutSpec, PartSpec
from stream.config.paths import from_home
from stream.config.setting import Settings, at_least, setting
from stream.config.source import FilesSource, GeneratedText, HubSource, SourceColumns
from stream.errors import require
from stream.formatting import count

METRICS_OF = {  # by the kind of label: the valid metrics of a task
    "class": ("accuracy", "f1", "macro_f1", "matthews_correlation"),
    "score": ("spearman", "pearson"),
    "span": ("answer_f1", "exact_match"),
}
NUM_FIELDS = {"single": 1, "pair": 2, "span": 2}  # of each kind but multi, which has more
MOST_SEGMENTS = 2  # tokenizers mark no third text
FIELD = re.compile(r"\{([^{}]*)\}")  # in a segment: where a field stands
METRICS = tuple(metric for metrics in METRICS_OF.values() for metric in metrics)
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass
class TaskSpec(Settings):
    """The specification of a task, as in its YAML.

    Attributes:
        title: the name in tables and figures.
        kind: ``single``, ``pair`` or ``multi`` (one, two, or more text fields per row), or ``span``
            (a question, and a context that contains the answer).
        fields: the names of the text fields; empty means the columns of ``files`` (or, without
            them, of ``original`` or ``hub``).
        segments: what the encoder reads, as one or two texts with each field's name in braces once,
            such as ``["word: {word} {sentence1}", "{sentence2}"]``. Empty means that the last field
            is the second segment, and that the others are the first, apart by a blank; a single
            field is one segment.
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
        cut: how the set is cut into several tasks by class.
        part: which set the task is a part of; the program fills it in where a set is cut.
    """

    GROUP: ClassVar[str] = "task"

    title: str = MISSING
    kind: str = setting(MISSING, ("single", "pair", "multi", "span"))
    fields: list[str] = field(default_factory=list)
    segments: list[str] = field(default_factory=list)
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
    cut: CutSpec = field(default_factory=CutSpec)
    part: PartSpec = field(default_factory=PartSpec)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError if the specification contradicts itself."""
        super().__post_init__()
        require(bool(self.title.strip()), "the title of a task is its name in tables, got none")
        self._check_labels()
        self._check_metrics()
        self._check_fields()
        for columns in (self.files, self.original, self.hub):
            require(
                not columns.text or (columns.start is not None) == (self.kind == "span"),
                f"task {self.title!r}: a span task needs start, the column of the answers' first "
                "characters; other tasks must not have it",
            )
            self._check_values(columns)

    def _check_values(self, columns: SourceColumns) -> None:
        """Raise UserError if a source's ``values`` or ``exclude`` cannot be meant."""
        both = [key for key in columns.values if key in columns.exclude]
        require(
            not both,
            f"task {self.title!r}: values and exclude both name {', '.join(map(repr, both))}; "
            "exclude leaves the rows out",
        )
        require(
            self.target != "span" or not (columns.values or columns.exclude),
            f"task {self.title!r}: values and exclude have no effect on the answers of a span task",
        )
        for key, name in columns.values.items():
            require(
                self._is_label(name),
                f"task {self.title!r}: values: {key!r} is to be {name!r}, which is not one of the "
                f"task's labels ({self.valid_labels})",
            )

    def _is_label(self, name: str) -> bool:
        """Return whether a class or a score can be called so; of a part, also one of its set's."""
        if self.labels is not None:
            return name in self.labels or name in self.part.labels
        low, high = self.score_range or (0.0, 0.0)
        try:
            return low <= float(name) <= high
        except ValueError:
            return False

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

    def _check_fields(self) -> None:
        """Raise UserError unless every source has the task's fields, and segments name them."""
        names, number = self.field_names, self.num_fields
        require(
            self.kind != "multi" or number > MOST_SEGMENTS,
            f"task {self.title!r}: a multi task has 3 text columns or more, got {names}",
        )
        for what in (self.fields, self.files.text, self.original.text, self.hub.text):
            require(
                len(what) in (0, number),
                f"task {self.title!r}: a {self.kind} task has {count(number, 'text column')}, "
                f"the same in every source, got {what}",
            )
        require(
            len(set(names)) == len(names),
            f"task {self.title!r}: text fields must have different names, got {names}",
        )
        if self.segments:
            require(self.kind != "span", f"task {self.title!r}: a span task has no segments")
            require(
                len(self.segments) <= MOST_SEGMENTS,
                f"task {self.title!r}: an encoder reads one or two segments, got {self.segments}",
            )
            named = [name for segment in self.segments for name in FIELD.findall(segment)]
            require(
                sorted(named) == sorted(names),
                f"task {self.title!r}: segments must name each field once in braces, got {named}. "
                f"Fields: {', '.join(names)}",
            )

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
            numbers = list(self.score_range)
            rises = len(numbers) == 2 and -math.inf < numbers[0] < numbers[1] < math.inf
            require(
                rises,
                f"task {self.title!r}: score_range must be the lowest and the highest score, got "
                f"{numbers}",
            )

    @property
    def all_metrics(self) -> list[str]:
        """The task's own metric, then those that are recorded beside it."""
        return [self.metric, *self.more_metrics]

    @property
    def field_names(self) -> list[str]:
        """The names of the text fields; none if neither they nor the columns are known."""
        sources = (self.files, self.original, self.hub)
        columns = next((source.text_columns for source in sources if source.text), [])
        return list(self.fields) or [" ".join(joined) for joined in columns]

    @property
    def num_fields(self) -> int:
        """How many texts a row has."""
        return NUM_FIELDS.get(self.kind) or len(self.field_names)

    @property
    def needs_root(self) -> bool:
        """Whether ``data.root`` decides where the files of the task are."""
        forms = [self.files, *([self.original] if self.original.text else [])]
        return any(not from_home(form.folder).is_absolute() for form in forms)

    @property
    def target(self) -> str:
        """The kind of label: ``class``, ``score`` or ``span``."""
        if self.kind == "span":
            return "span"
        return "score" if self.labels is None else "class"

    def shares_labels(self, other: "TaskSpec") -> bool:
        """Return whether a label can mean the same in another task; answers of texts never do."""
        if "span" in (self.target, other.target) or self.target != other.target:
            return False
        return self.target == "score" or not set(self.labels or ()).isdisjoint(other.labels or ())

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
