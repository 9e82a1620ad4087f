"""What a decoder's tokens may read, as masks that a CUDA graph can hold.

transformers makes such masks too, but looks at their values to leave them out where it can, so that
what is computed depends on whether a step is captured. Its masks also go by columns; these go by
the order of tokens, so that a soft prompt may stand in any column.

B examples, L tokens.
"""

from typing import Any

import torch

from stream.errors import choose, require
from stream.models.families.family import Family

Masks = torch.Tensor | dict[str, torch.Tensor]


def read_windows(config: Any, family: Family) -> dict[str, int | None]:
    """Return how many tokens a token reads, by the kind of layer; None stands for all before it.

    Raises:
        UserError: a kind of layer that is not known, or a window without a size.
    """
    if family.window == "none":
        return {"": None}
    known = {"full_attention": None, "sliding_attention": config.sliding_window}
    if family.window == "every_layer":
        return {"": config.sliding_window}
    for kind in config.layer_types:
        choose(f"kind of layer in layer_types of {config.model_type}", kind, known)
    kinds = sorted(set(config.layer_types))
    require(
        "sliding_attention" not in kinds or config.sliding_window is not None,
        f"sliding_window={config.sliding_window} of {config.model_type} must be a number of tokens "
        "where layer_types has sliding_attention",
    )
    return {kind: known[kind] for kind in kinds}


def places(mask: torch.Tensor, between: int = 0, behind: int = 0) -> torch.Tensor:
    """Return the place of every column in its text, [B, L + between]; padding has none of its own.

    Args:
        mask: 1 on tokens, [B, L]; padding may be on either side.
        between: vectors that stand in the columns behind the first ``behind`` ones.
        behind: tokens of a text that come before those vectors, wherever the text begins.
    """
    order = mask.cumsum(1) - 1
    if not between:
        return order
    order = order + between * (order >= behind)
    added = torch.arange(behind, behind + between, device=mask.device).expand(len(mask), -1)
    return torch.cat([order[:, :behind], added, order[:, behind:]], dim=1)


def causal_masks(
    mask: torch.Tensor, order: torch.Tensor, windows: dict[str, int | None]
) -> dict[str, torch.Tensor]:
    """Return which columns each column reads, bool [B, 1, L, L], for each kind of layer.

    A column reads itself, so that padding in front of a text, which reads no token, is a number.

    Args:
        mask: 1 on tokens and vectors, [B, L].
        order: their places in the text, [B, L].
        windows: how many tokens are read, by the kind of layer.
    """
    distance = order[:, None, :, None] - order[:, None, None, :]
    itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    earlier = (distance >= 0) & mask[:, None, None].bool()
    found = {}
    for kind, window in windows.items():
        near = earlier if window is None else earlier & (distance < window)
        found[kind] = near | itself
    return found


def added_to_scores(read: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what eager attention adds to its scores: 0 where is read, else the least number."""
    return (~read).to(dtype) * torch.finfo(dtype).min
