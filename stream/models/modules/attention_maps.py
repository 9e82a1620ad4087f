"""Where the self-attention of an encoder's layers is, and its maps."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from stream.errors import require
from stream.models.encoder import Encoder

NAMES = (("query", "key", "value"), ("q", "k", "v"))  # BERT, RoBERTa and ELECTRA; MPNet


@dataclass(frozen=True)
class SelfAttention:
    """The attention of one layer.

    Attributes:
        module: what computes it from the maps; also the output map, where it is inside (MPNet).
        query: its map D -> D.
        key: its map D -> D.
        value: its map D -> D.
    """

    module: nn.Module
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear

    @property
    def output(self) -> nn.Linear | None:
        """The output map, where ``module`` applies it."""
        inner: Any = self.module
        return getattr(inner, "o", None)

    @property
    def heads(self) -> int:
        """The number of heads."""
        inner: Any = self.module
        return int(inner.num_attention_heads)


def maps_of(module: nn.Module) -> SelfAttention | None:
    """Return the attention that a module computes; None if it computes none itself."""
    inside = dict(module.named_children())
    for names in NAMES:
        maps = [inside.get(name) for name in names]
        linear = [found for found in maps if isinstance(found, nn.Linear)]
        if len(linear) == len(names):
            return SelfAttention(module, *linear)
    return None


def self_attentions(encoder: Encoder, learner: str) -> list[SelfAttention]:
    """Return the self-attention of every layer, from the bottom up.

    Raises:
        UserError: an encoder whose attention has no maps of these names; names the ``learner``.
    """
    layers = encoder.layers()
    found = [[f for m in layer.modules() if (f := maps_of(m)) is not None] for layer in layers]
    require(
        all(len(each) == 1 for each in found),
        f"learner={learner}: {type(encoder.body).__name__} has no query, key and value map in one "
        f"module of each layer ({'; '.join(', '.join(names) for names in NAMES)})",
    )
    return [each[0] for each in found]
