"""The distances of tokens, found once instead of at every pass.

Some encoders find them with a number that is copied from the CPU, and a CUDA graph can hold no such
copy. N is the distance from which on the encoder counts all alike, L tokens.
"""

from typing import Any

import torch
from torch import nn

TABLE = "held_distances"


def hold_distances(module: nn.Module) -> None:
    """Let a module read its tokens' distances from a table that it made itself.

    Args:
        module: what transformers calls the encoder of DeBERTa v2: it has ``get_rel_pos`` and
            ``max_relative_positions``, and takes ``relative_pos`` [1, L, L]. One that counts no
            distances is left as it is.
    """
    inner: Any = module
    if not inner.relative_attention:
        return
    most = int(inner.max_relative_positions)
    found = inner.get_rel_pos(torch.zeros(1, most + 1, 1))[0]  # of query i and key j, at i - j
    table = torch.cat([found[0].flip(0), found[1:, 0]])  # -N to N
    table = table.to(inner.rel_embeddings.weight.device)
    module.register_buffer(TABLE, table, persistent=False)
    module.register_forward_pre_hook(_give_distances, with_kwargs=True)


def _give_distances(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Add the distances of all pairs of tokens to a module's arguments; a forward pre-hook."""
    states = args[0] if args else kwargs["hidden_states"]
    table = module.get_buffer(TABLE)
    most = len(table) // 2
    place = torch.arange(states.shape[1], device=states.device)
    apart = (place[:, None] - place).clamp(-most, most)
    return args, {**kwargs, "relative_pos": table[apart + most][None]}
