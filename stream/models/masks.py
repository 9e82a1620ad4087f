"""Which tokens a token reads: masks that a CUDA graph can hold.

B texts, L tokens. They are made of the tokens' mask by operations on its device alone; those that
transformers makes may look at a mask's values (and leave it out where it hides nothing, so that
what is computed depends on whether a step is captured), or read a number on the CPU.

Tokens are compared by their places in a text, not by columns: padding may be on either side, and a
soft prompt may stand in any column.
"""

from typing import Any

import torch

from stream.errors import choose, require
from stream.models.families.family import Family

ALL = "*"
"""What stands for all layers in `Family.windows`."""


class Masks:
    """Makes of the tokens' mask what an encoder's attention takes."""

    def __init__(self, config: Any, family: Family):
        """Read what the configuration says of attention.

        Raises:
            UserError: the family says nothing of a type of layer, or names no setting, or its
                attention is computed in a way that leaves something out.
        """
        kind = getattr(config, "_attn_implementation", None)
        if kind == "sdpa":
            choose(f"attention of {config.model_type}", kind, family.attentions)
        self._adds = kind == "eager" and family.mask == "added"
        self._causal = family.causal
        self._windows = _windows(config, family) if kind in ("eager", "sdpa") else {}

    def of(self, mask: torch.Tensor, order: torch.Tensor, dtype: torch.dtype) -> Any:
        """Return the mask that transformers' encoder takes: one, or one for each type of layer.

        Args:
            mask: 1 for tokens, 0 for padding, [B, L].
            order: the places of tokens (`places`), [B, L].
            dtype: of the attention scores.
        """
        if not self._windows:
            return added(mask[:, None, None], dtype) if self._adds else mask
        found = {}
        for name, window in self._windows.items():
            read = readable(mask, order, window, causal=self._causal)
            found[name] = added(read, dtype) if self._adds else read
        return found.get(ALL, found)


def places(mask: torch.Tensor, between: int = 0, behind: int = 0) -> torch.Tensor:
    """Return the place of every column in its text, from 0, [B, L + between].

    Padding has none of its own: that of a token before it, or -1.

    Args:
        mask: 1 on tokens, [B, L].
        between: vectors that stand in the columns behind the first ``behind`` ones.
        behind: tokens of a text that come before those vectors, in whatever column it begins.
    """
    order = mask.cumsum(1) - 1
    if not between:
        return order
    order = order + between * (order >= behind)
    vectors = torch.arange(behind, behind + between, device=mask.device).expand(len(mask), -1)
    return torch.cat([order[:, :behind], vectors, order[:, behind:]], dim=1)


def added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what a mask adds to the attention scores: 0, or the type's smallest number.

    Args:
        mask: 1 where a token is read, of any shape.
        dtype: of the scores.
    """
    return (1 - mask.to(dtype)) * torch.finfo(dtype).min


def readable(
    mask: torch.Tensor, order: torch.Tensor, window: int | None, *, causal: bool
) -> torch.Tensor:
    """Return which tokens each token reads, [B, 1, 1 or L, L].

    Args:
        mask: 1 for tokens, 0 for padding, [B, L].
        order: the places of tokens, [B, L].
        window: how far away a token may be; of a causal encoder, how many tokens are read, the
            reader among them. None if each reads all that it may.
        causal: tokens behind are not read.
    """
    keys, length = mask.bool()[:, None, None], mask.shape[1]
    if not causal and (window is None or length <= window + 1):
        return keys
    # Comparisons alone, for a matrix of distances would be eight times as large as what is made.
    reader, other = order[:, None, :, None], order[:, None, None, :]
    near = other <= (reader if causal or window is None else reader + window)
    if window is not None:
        near &= other >= reader - (window - 1 if causal else window)
    # Padding far from every token would read nothing, and a mean over nothing is no number.
    return keys & near | torch.eye(length, dtype=torch.bool, device=mask.device)


def _windows(config: Any, family: Family) -> dict[str, int | None]:
    """Return how far away a token may be that another reads, for every type of layer.

    Raises:
        UserError: the family says nothing of a type of layer, or names no setting.
    """
    if not family.windows:
        return {ALL: None} if family.causal else {}
    if ALL in family.windows:
        return {ALL: getattr(config, str(family.windows[ALL]))}
    types = sorted(set(config.layer_types))
    unknown = sorted(set(types) - set(family.windows))
    require(
        not unknown,
        f"layer_types of {config.model_type} has {', '.join(unknown)}; its family knows "
        f"{', '.join(family.windows)} (windows)",
    )
    found = {}
    for kind in types:
        name = family.windows[kind]
        far = None if name is None else getattr(config, name, None)
        require(
            name is None or isinstance(far, int),
            f"the family of {config.model_type} takes the window of {kind} from {name!r}, which is "
            f"{far!r} in the configuration; it must be a number",
        )
        found[kind] = far
    return found
