"""Low-rank changes of linear maps (LoRA, Hu et al. 2022, arXiv 2106.09685, equation 3).

B examples, L tokens, D_in and D_out the widths of the changed map, r the rank. A map may be a part
of a larger one: only its own outputs are changed.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh
from stream.models.onednn import convolve_linears
from stream.models.places import LinearMap


class LowRank(Fresh):
    """(alpha / r) B A of one map D_in -> D_out: r (D_in + D_out) parameters."""

    def __init__(self, changed: LinearMap, rank: int, alpha: float):
        super().__init__()
        self.down = nn.Linear(changed.in_features, rank, bias=False)
        self.up = nn.Linear(rank, changed.out_features, bias=False)
        self._scale = alpha / rank
        self._part = changed.part
        convolve_linears(self)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw A as Kaiming et al. do for a linear map, as the released code; B is 0."""
        weight = torch.empty(self.down.weight.shape)
        nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
        with torch.no_grad():
            self.down.weight.copy_(weight)
            self.up.weight.zero_()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map the changed map's input [B, L, D_in] to what is added to its output."""
        return self._scale * self.up(self.down(hidden))

    def change(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Add the change to the map's part of the output [B, L, >= D_out]; a forward hook."""
        del module
        return self._part.plus(output, self(inputs[0]))


class Decomposed(LowRank):
    """A map's rows as magnitude and direction: r (D_in + D_out) + D_out parameters.

    DoRA (Liu et al. 2024, arXiv 2402.09353, equation 5): W' = m (W + c B A) / |W + c B A| with
    c = alpha / r and the norm of each output's row, so that m starts as |W|. The bias is added
    afterwards, as it was. No gradient goes through the norm (section 4.3).
    """

    def __init__(self, changed: LinearMap, rank: int, alpha: float):
        super().__init__(changed, rank, alpha)
        self.magnitude = nn.Parameter(torch.empty(changed.out_features))
        norms = changed.weight.detach().norm(dim=1)
        self.register_buffer("first", norms, persistent=False)  # not read to predict

    def initialize(self, generator: torch.Generator) -> None:
        """Draw A; B is 0 and m the norms of the map's rows, so that nothing is changed."""
        super().initialize(generator)
        with torch.no_grad():
            self.magnitude.copy_(self.get_buffer("first"))

    def change(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Put what W' gives in place of W x + bias in the output [B, L, >= D_out]; a hook."""
        changed, own = LinearMap(module, self._part), self._part.of(output)
        exact = torch.promote_types(output.dtype, torch.float32)  # a sum of D_in squares
        with torch.no_grad():
            product = self.up.weight.to(exact) @ self.down.weight.to(exact)
            norms = (changed.weight.to(exact) + self._scale * product).norm(dim=1)
        stretch = (self.magnitude / norms).to(output.dtype)
        plain = own if changed.bias is None else own - changed.bias
        made = own + (stretch - 1) * plain + stretch * self(inputs[0])
        return self._part.placed(output, made)


class LowRankByTask(ByTask):
    """A low-rank change of one map for every task; the active ones are added."""

    def __init__(self, changes: dict[str, LowRank], changed: LinearMap, active: ActiveTasks):
        super().__init__(changes)
        self._part = changed.part
        self._active = active

    def change(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Add the active tasks' changes to the map's part of the output; a forward hook."""
        del module
        for name in self._active.names:
            output = self._part.plus(output, self.pair(name)(inputs[0]))
        return output

    def pair(self, task: str) -> LowRank:
        """Return the low-rank pair of one task."""
        pair = self[task]
        assert isinstance(pair, LowRank)
        return pair


def change_query_value(
    encoder: Encoder, name: str, make: Callable[[LinearMap], LowRank | LowRankByTask]
) -> None:
    """Hook a change to every query and value map, from the bottom up.

    Args:
        encoder: the encoder.
        name: what a change is called in the module that computes the map.
        make: returns the change of a map.
    """
    for maps in encoder.attention_maps():
        for role, changed in (("query", maps.query), ("value", maps.value)):
            change = make(changed)
            changed.module.add_module(changed.named(name, role), change)
            changed.module.register_forward_hook(change.change)
