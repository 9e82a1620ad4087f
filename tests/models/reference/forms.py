"""Compares the forms of an adapter with a forward pass by hand that says all that they read.

B examples, L tokens, D width.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch

from stream.data.batch import TokenBatch
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import AdaptedSubLayer, Architecture, insert_adapters
from stream.seeding import torch_generator
from tests.models.reference import check
from tests.models.reference.functions import Weights, gelu, linear

Map = Callable[[torch.Tensor], torch.Tensor]
Change = Callable[[int, str, torch.Tensor, torch.Tensor, torch.Tensor, Map], torch.Tensor]
"""(layer, sub-layer, F(x), x, what F's maps read, the norm that reads the sum) to what is added."""

# (what an adapter adds, F(x), x, what F's maps read, the norm that reads the sum)
FORMS: dict[str, Callable[[Map, torch.Tensor, torch.Tensor, torch.Tensor, Map], torch.Tensor]] = {
    "sequential": lambda added, f, x, read, norm: f + added(f),
    "parallel": lambda added, f, x, read, norm: f + added(read),
    "multiplicative": lambda added, f, x, read, norm: f * (1 + added(read)),
    "pfeiffer": lambda added, f, x, read, norm: f + added(norm(f + x)),
}


class Changed(Protocol):
    """A family's forward pass with what a `Change` makes of every sub-layer."""

    def __call__(
        self, weights: Weights, config: Any, batch: TokenBatch, change: Change, /
    ) -> torch.Tensor: ...


def adapted(encoder: Encoder, form: str = "sequential") -> list[AdaptedSubLayer]:
    """Insert adapters whose weights are all drawn; attention's of a layer before its other one."""
    found = [a for _, a in insert_adapters(encoder, Architecture(encoder.width, 3), form)]
    generator = torch_generator(0, "adapters")
    for one in found:
        for parameter in one.adapter.double().parameters():
            parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator).double()
    return found


def check_form(
    shape: dict[str, Any], changed: Changed, form: str, tolerance: float = check.TOLERANCE
) -> None:
    """Adapters of a form read what they should: states, and the gradient of every weight."""
    encoder, batch = check.drawn_encoder(shape), check.made_batch()
    weights, config = check.weights_of(encoder), encoder.body.config
    adapters = [one.adapter for one in adapted(encoder, form)]
    copies = [
        {n: p.detach().clone().requires_grad_() for n, p in adapter.named_parameters()}
        for adapter in adapters
    ]

    def change(
        layer: int, position: str, f: torch.Tensor, x: torch.Tensor, read: torch.Tensor, norm: Map
    ) -> torch.Tensor:
        own = copies[2 * layer + (position == "feedforward")]

        def added(hidden: torch.Tensor) -> torch.Tensor:
            return linear(own, "up", gelu(linear(own, "down", hidden)))

        return FORMS[form](added, f, x, read, norm)

    real = batch.attention_mask[..., None]
    found = encoder.states(batch)[1] * real
    wanted = changed(weights, config, batch, change) * real
    check.close(found, wanted, tolerance)
    for states in (found, wanted):
        states.square().mul(torch.arange(encoder.width)).sum().backward()
    for adapter, copied in zip(adapters, copies, strict=True):
        for name, parameter in adapter.named_parameters():
            theirs = copied[name].grad
            assert parameter.grad is not None
            assert theirs is not None
            assert theirs.abs().max() > 1e-3, "an adapter that the states do not depend on"
            check.close(parameter.grad, theirs, 100 * tolerance)
