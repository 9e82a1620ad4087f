"""Settings: which tasks a run learns, where their rows come from, and how many are used."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from stream.errors import require


@dataclass
class StreamConfig:
    """A named list of tasks.

    Attributes:
        name: the name of the stream.
        tasks: the names of its tasks, in order.
    """

    name: str = "custom"
    tasks: list[str] = field(default_factory=list)


@dataclass
class GeneratedData:
    """Miniature tasks from a seeded grammar.

    Attributes:
        source: always ``generated``.
        train: rows of each task's training split, before `Limits` apply.
        validation: rows of each task's validation split.
        test: rows of each task's test split.
        seed: another seed gives other texts.
    """

    source: str = "generated"
    train: int = 256
    validation: int = 64
    test: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every split has at least one row."""
        for name in ("train", "validation", "test"):
            rows = getattr(self, name)
            require(rows >= 1, f"data.{name} must be at least 1, got {rows}")


@dataclass
class FilesData:
    """The user's own files; each task's YAML says which.

    Attributes:
        source: always ``files``.
        root: the folder that all paths are relative to.
    """

    source: str = "files"
    root: str = MISSING


@dataclass
class HubData:
    """Data sets of the Hugging Face hub; each task's YAML says which.

    Attributes:
        source: always ``hub``.
        offline: true never uses the network, only the cache.
    """

    source: str = "hub"
    offline: bool = False


@dataclass
class Limits:
    """The largest number of rows that is used of each task; null uses all.

    Attributes:
        train: of the training split.
        eval: of the validation split and of the test split.
    """

    train: int | None = None
    eval: int | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless each limit is at least 1 or null."""
        for name, rows in (("train", self.train), ("eval", self.eval)):
            require(rows is None or rows >= 1, f"limits.{name} must be at least 1, got {rows}")
