"""LoRA: a low-rank change of attention's query and value maps, isolated a task.

Hu et al. 2022 (arXiv 2106.09685), equation 3: W x + (alpha / r) B A x, A drawn, B = 0 at first, on
W_q and W_v (section 4.2). Deviation: no dropout before A.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stream.errors import require
from stream.learners._shared.inserted import Inserted
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Fresh
from stream.models.onednn import convolve_linears

CHANGED = ("query", "value", "q", "v")  # BERT, RoBERTa and ELECTRA; MPNet


class LowRank(Fresh):
    """(alpha / r) B A of one map D_in -> D_out: r (D_in + D_out) parameters."""

    def __init__(self, changed: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.down = nn.Linear(changed.in_features, rank, bias=False)
        self.up = nn.Linear(rank, changed.out_features, bias=False)
        self._scale = alpha / rank

    def initialize(self, generator: torch.Generator) -> None:
        """Draw A as Kaiming et al. do for a linear map, as the released code; B is 0."""
        weight = torch.empty(self.down.weight.shape)
        nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
        with torch.no_grad():
            self.down.weight.copy_(weight)
            self.up.weight.zero_()

    def change(self, module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> Any:
        """Add the change to the map's output [..., D_out]; a forward hook."""
        del module
        return output + self._scale * self.up(self.down(inputs[0]))


@dataclass
class Lora(Inserted):
    """Changes of rank ``rank`` of every query and value map, and a head."""

    lr: float = 4e-3
    rank: int = 8
    alpha: float = 16.0

    def __post_init__(self) -> None:
        """Refuse a rank that is none."""
        super().__post_init__()
        require(self.rank >= 1, f"learner.rank must be at least 1, got {self.rank}")
        require(self.alpha > 0, f"learner.alpha must be positive, got {self.alpha}")

    def insert(self, encoder: Encoder) -> None:
        """Hook a low-rank map to every query and value map.

        Raises:
            UserError: an encoder whose attention has no maps of these names.
        """
        found = [
            module
            for name, module in encoder.named_modules()
            if isinstance(module, nn.Linear) and name.rpartition(".")[2] in CHANGED
        ]
        layers = len(encoder.layers())
        require(
            len(found) == 2 * layers,
            f"learner=lora: {type(encoder.body).__name__} has {len(found)} query and value maps "
            f"({', '.join(CHANGED)}) in {layers} layers, expected 2 a layer",
        )
        for module in found:
            change = LowRank(module, self.rank, self.alpha)
            convolve_linears(change)
            module.add_module("lora", change)
            module.register_forward_hook(change.change)
