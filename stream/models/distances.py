"""The distances of tokens, found once instead of at every pass.

Some encoders find them with a number that is copied from the CPU, and a CUDA graph can hold no such
copy. N is the distance from which on the encoder counts all alike, L tokens.
"""

from typing import Any

import torch
from torch import nn

TABLE = "held_distances"
READ = ("get_rel_pos", "relative_attention")
"""What `hold_distances` reads of a module, whether it counts distances or not."""


def hold_distances(module: nn.Module) -> None:
    """Let a module read its tokens' distances from a table that it made itself.

    Args:
        module: it has what is in `READ` and takes ``relative_pos`` [1, L, L], as the ``encoder`` of
            DeBERTa v2 in transformers. One that counts no distances is left as it is.
    """
    inner: Any = module
    if not inner.relative_attention:
        return
    most = int(inner.max_relative_positions)
    one, many = torch.zeros(1, 1, 1), torch.zeros(1, most + 1, 1)
    below = inner.get_rel_pos(many, query_states=one)[0, 0]  # of a query and the keys behind it
    above = inner.get_rel_pos(one, query_states=many)[0, :, 0]
    table = torch.cat([below.flip(0), above[1:]])  # of -N to N
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
