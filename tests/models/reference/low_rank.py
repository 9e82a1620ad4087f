"""Compares low-rank changes of queries and values with a forward pass whose weights have them."""

from collections.abc import Callable
from typing import Any

import torch

from stream.models.modules.low_rank import LowRank, change_query_value
from stream.models.places import LinearMap
from stream.seeding import torch_generator
from tests.models.reference import check
from tests.models.reference.post_norm import Names

RANK, ALPHA = 2, 3.0
Add = Callable[[dict[str, torch.Tensor], Any, int, str, torch.Tensor], None]
"""Adds to the weights of (configuration, layer, ``query`` or ``value``) a change [D, D]."""


def by_name(names: Names, layers: str) -> Add:
    """Return what adds a change where each map has weights of its own in ``layers``."""

    def add(
        weights: dict[str, torch.Tensor], config: Any, index: int, role: str, change: torch.Tensor
    ) -> None:
        del config
        name = f"{getattr(names.within(f'{layers}.{index}'), role)}.weight"
        weights[name] = weights[name] + change

    return add


def check_low_rank(shape: dict[str, Any], reference: check.Reference, add: Add) -> None:
    """LoRA is W + (alpha / r) B A, wherever the map is used: states, and the gradients of A, B."""
    encoder, batch = check.drawn_encoder(shape), check.made_batch()
    weights, config = check.weights_of(encoder), encoder.body.config
    changes: list[LowRank] = []
    generator = torch_generator(0, "low rank")

    def make(changed: LinearMap) -> LowRank:
        made = LowRank(changed, RANK, ALPHA).double()
        for parameter in made.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data = 0.3 * drawn
        changes.append(made)
        return made

    change_query_value(encoder, "lora", make)
    copies = [[p.detach().clone().requires_grad_() for p in c.parameters()] for c in changes]
    for place, (a, b) in enumerate(copies):
        role = ("query", "value")[place % 2]
        add(weights, config, place // 2, role, ALPHA / RANK * (b @ a))
    found = encoder.states(batch)[1] * batch.attention_mask[..., None]
    wanted = reference(weights, config, batch) * batch.attention_mask[..., None]
    check.close(found, wanted)
    for states in (found, wanted):
        states.square().mul(torch.arange(encoder.width)).sum().backward()
    for change, copied in zip(changes, copies, strict=True):
        for parameter, theirs in zip(change.parameters(), copied, strict=True):
            assert parameter.grad is not None
            assert theirs.grad is not None
            assert theirs.grad.abs().max() > 1e-3, "a change that the states do not depend on"
            check.close(parameter.grad, theirs.grad, 1e-8)
