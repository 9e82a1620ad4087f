"""How weights are stored that learning does not change: ``backbone.storage``."""

from collections.abc import Collection

from stream.errors import require
from stream.models.bf16 import to_bf16
from stream.models.encoder import Encoder
from stream.models.four_bit import quantize_linears


def store_unchanged(
    encoder: Encoder, names: Collection[str], *, storage: str, learner: str
) -> None:
    """Store weights of an encoder that learning does not change.

    Args:
        encoder: the encoder, in float32.
        names: what these weights are called in it.
        storage: that of `BackboneConfig`.
        learner: the method's name, for the message.

    Raises:
        UserError: learning changes all that a prediction reads, so the setting has no effect; or 4
            bits are not possible here.
    """
    if storage == "float32":
        return
    require(
        any(map(encoder.reads, names)),
        f"backbone.storage={storage} has no effect with learner={learner}, which trains every "
        "weight of the encoder",
    )
    if storage == "nf4":
        quantize_linears(encoder, encoder.layers(), names)
    to_bf16(encoder, names)
