"""Rotary positions: which kinds can be used."""

from typing import Any

from stream.errors import require

BY_BATCH = ("dynamic", "longrope")
"""Kinds whose angles depend on the longest text of a batch."""


def check_rotary(config: Any) -> None:
    """Check that queries and keys of a text are turned alike in every batch.

    Args:
        config: of an encoder with rotary positions. Its ``rope_parameters`` are those of all
            layers, or of each kind of layer.

    Raises:
        UserError: the angles depend on what else is in the batch.
    """
    given = getattr(config, "rope_parameters", None) or {}
    for parameters in (given, *(value for value in given.values() if isinstance(value, dict))):
        kind = parameters.get("rope_type", "default")
        require(
            kind not in BY_BATCH,
            f"rope_type={kind!r} of {config.model_type} cannot be used: the positions of a text "
            "would depend on the longest text of its batch; set another rope_type, such as "
            "'default', in config.json",
        )
