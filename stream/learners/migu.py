"""MIGU: update the rows whose outputs are large (Du et al. 2024, arXiv 2406.17245, section 3).

In the forward pass, each linear map notes how large its outputs are: n_i, the share |h_i| / |h|_1
of output i, mean over the tokens of the batch. In the backward pass the gradient of row i of the
map's weights counts only where n_i is among the largest: where it is at least the quantile
``masked`` of n (0.7 in the paper and its code, so that 3 rows of 10 learn). Which rows those are
depends on the texts, so that unlike tasks change unlike rows; no task's name and no stored example
is needed. As in the released code the first task is learned without a mask, gradients are masked
before the optimizer (a masked row still moves by its momentum of earlier steps and by weight
decay), and what is no linear map, embeddings and LayerNorms, is not masked.

Deviations: the code adds |h_i| over tokens without dividing by |h|_1, padding included; here each
token counts alike and padding does not. A row's bias is masked with it (T5 has none). Heads are
not masked, be they one a task or one for all. ``part=adapter`` masks the rows of both maps of one
shared adapter set, as the paper does with both maps of LoRA. A map that makes queries, keys and
values at once is one map.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from stream.config.setting import Range, setting
from stream.data.batch import Batch
from stream.learners._shared.sequential import Sequential
from stream.learners.base import Tags
from stream.models.encoder import Encoder
from stream.models.modules.magnitudes import Magnitudes
from stream.models.places import has_columns, is_linear


@dataclass
class Migu(Sequential):
    """Train one encoder, rows of large outputs.

    A step changes the rows of linear maps whose outputs are largest on its own batch.

    Attributes:
        masked: the fraction of each linear map's rows that a step leaves alone, from the second
            task on; 0 is plain fine-tuning.
    """

    masked: float = setting(0.7, Range(0, 1, below=True))

    tags: ClassVar[Tags] = replace(
        Sequential.tags,
        paper="Du et al. 2024, arXiv 2406.17245",
        stores="head",
        splits_batches=False,
        cuda_graph_safe=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Watch every linear map that is trained."""
        super().setup(encoder, task_names)
        self._magnitudes, self._maps = Magnitudes(), dict[str, nn.Module]()
        for name, module in encoder.named_modules():
            weight = f"{name}.weight"
            if is_linear(module) and encoder.reads(weight) and self.trains(weight):
                self._magnitudes.watch(name, module)
                self._maps[name] = module

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, and note how large its outputs are."""
        if not self.learned:
            return super().loss(batch)
        with self._magnitudes.noting(batch.attention_mask, batch.real):
            return super().loss(batch)

    def after_backward(self, batch: Batch) -> None:
        """Keep the gradients of the rows of the largest outputs alone."""
        if not self.learned:
            return
        for name, shares in self._magnitudes.shares.items():
            kept = (shares >= torch.quantile(shares, self.masked)).to(shares.dtype)
            module = self._maps[name]
            for parameter in module.parameters(recurse=False):  # not what a method put inside
                if parameter.grad is not None:
                    by_row = parameter.ndim == 2 and not has_columns(module)
                    parameter.grad.mul_(kept[:, None] if by_row else kept)
