"""Which tasks a run learns, where their rows come from, and how many of them are used."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from stream.errors import require


@dataclass
class StreamConfig:
    """The name under which a list of tasks is known, and that list."""

    name: str = "custom"
    tasks: list[str] = field(default_factory=list)


@dataclass
class GeneratedData:
    """Miniature tasks from a seeded grammar; rows a split before `limits`."""

    source: str = "generated"
    train: int = 256
    validation: int = 64
    test: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse empty splits."""
        for name in ("train", "validation", "test"):
            rows = getattr(self, name)
            require(rows >= 1, f"data.{name} must be at least 1, got {rows}")


@dataclass
class FilesData:
    """People's own files below ``root``; each task's YAML says which."""

    source: str = "files"
    root: str = MISSING


@dataclass
class HubData:
    """The Hugging Face hub, or its cache; ``offline`` never asks the network."""

    source: str = "hub"
    offline: bool = False


@dataclass
class Limits:
    """At most this many rows of each task; null means all of them."""

    train: int | None = None
    eval: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing."""
        for name, rows in (("train", self.train), ("eval", self.eval)):
            require(rows is None or rows >= 1, f"limits.{name} must be at least 1, got {rows}")
