"""Which tokens a token reads: masks that a CUDA graph can hold.

B texts, L tokens. They are made of the tokens' mask by operations on its device alone; those that
transformers makes may look at a mask's values, or read a number on the CPU.
"""

from typing import Any

import torch

from stream.errors import require
from stream.models.families.family import Family


class Masks:
    """Makes of the tokens' mask what an encoder's attention takes."""

    def __init__(self, config: Any, family: Family):
        """Read what the configuration says of attention.

        Raises:
            UserError: the family says nothing of a type of layer, or names no setting.
        """
        kind = getattr(config, "_attn_implementation", None)
        self._adds = kind == "eager"
        self._windows = _windows(config, family) if kind in ("eager", "sdpa") else {}

    def of(self, mask: torch.Tensor, dtype: torch.dtype) -> Any:
        """Return the mask that transformers' encoder takes: one, or one for each type of layer.

        Args:
            mask: 1 for tokens, 0 for padding, [B, L].
            dtype: of the attention scores.
        """
        if self._windows:
            found = {name: readable(mask, far) for name, far in self._windows.items()}
            return {name: added(m, dtype) for name, m in found.items()} if self._adds else found
        return added(mask[:, None, None], dtype) if self._adds else mask


def added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what a mask adds to the attention scores: 0, or the type's smallest number.

    Args:
        mask: 1 where a token is read, of any shape.
        dtype: of the scores.
    """
    return (1 - mask.to(dtype)) * torch.finfo(dtype).min


def readable(mask: torch.Tensor, window: int | None) -> torch.Tensor:
    """Return which tokens each token reads, [B, 1, 1 or L, L].

    Args:
        mask: 1 for tokens, 0 for padding, [B, L].
        window: how far away a token may be; None if each reads all.
    """
    keys, length = mask.bool()[:, None, None], mask.shape[1]
    if window is None or length <= window + 1:
        return keys
    places = torch.arange(length, device=mask.device)
    distance = (places[:, None] - places).abs()
    # Padding far from every token would read nothing, and a mean over nothing is no number.
    return keys & (distance <= window) | (distance == 0)


def _windows(config: Any, family: Family) -> dict[str, int | None]:
    """Return how far away a token may be that another reads, for every type of layer.

    Raises:
        UserError: the family says nothing of a type of layer, or names no setting.
    """
    if not family.windows:
        return {}
    unknown = sorted(set(config.layer_types) - set(family.windows))
    require(
        not unknown,
        f"layer_types of {config.model_type} has {', '.join(unknown)}; its family knows "
        f"{', '.join(family.windows)} (windows)",
    )
    found = {}
    for kind, name in family.windows.items():
        far = None if name is None else getattr(config, name, None)
        require(
            name is None or isinstance(far, int),
            f"the family of {config.model_type} takes the window of {kind} from {name!r}, which is "
            f"{far!r} in the configuration; it must be a number",
        )
        found[kind] = far
    return found
