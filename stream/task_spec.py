"""What a task's YAML states: its kind, labels and metric, and where its rows come from."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from stream.errors import choose, require

METRICS = ("accuracy", "f1", "matthews_correlation", "spearman")


@dataclass
class FilesColumns:
    """Where the `files` source finds a task: its folder below the root, and its columns."""

    folder: str = MISSING
    text: list[str] = field(default_factory=list)
    label: str = "label"


@dataclass
class GeneratedText:
    """How the generated twin of a task looks: words a text, and the pool of texts it shares."""

    words: int = 12
    pool: str | None = None


@dataclass
class TaskSpec:
    """One task as its YAML states it. ``labels`` null means regression on ``score_range``."""

    title: str = MISSING
    kind: str = MISSING
    labels: list[str] | None = None
    score_range: list[float] | None = None
    metric: str = MISSING
    version: int = 1
    source: str = MISSING
    files: FilesColumns = field(default_factory=FilesColumns)
    generated: GeneratedText = field(default_factory=GeneratedText)

    def __post_init__(self) -> None:
        """Refuse a contradictory specification."""
        choose("task kind", self.kind, ("single", "pair"))
        choose("task metric", self.metric, METRICS)
        require(
            (self.labels is None) != (self.score_range is None),
            f"task {self.title!r}: give either labels or score_range, not both and not neither",
        )
        if self.labels is not None:
            distinct = len(set(self.labels))
            require(
                distinct == len(self.labels) >= 2,
                f"task {self.title!r}: needs at least two different labels, got {self.labels}",
            )
        else:
            low, high = self.score_range or (0.0, 0.0)
            require(low < high, f"task {self.title!r}: score_range must rise, got {low}, {high}")
        require(
            (self.metric == "spearman") == (self.labels is None),
            f"task {self.title!r}: spearman is for regression, the other metrics for classes",
        )
        expected = 1 if self.kind == "single" else 2
        require(
            len(self.files.text) == expected,
            f"task {self.title!r}: a {self.kind} task has {expected} text column(s), "
            f"got {self.files.text}",
        )

    @property
    def num_outputs(self) -> int:
        """Width K of the task's head: its classes, or 1 for regression."""
        return len(self.labels) if self.labels is not None else 1
