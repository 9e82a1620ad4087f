"""Lottery-ticket sparse fine-tuning, isolated per task (Ansell et al. 2022, arXiv 2110.07560).

Section 3.1: train everything; keep the K entries that changed most, by one threshold for the whole
encoder; set them back to their pretrained values; train them alone. The head is outside the mask
and always trained. K is ``fraction`` of the encoder (the paper: 8% for tasks). Deviations: one
learning-rate schedule and one optimizer go through both halves, so the second starts with the
moments of the first; both have as many epochs as another method has in all (the released scripts
for tasks: 3, then 10); LayerNorms are among what may be chosen, which those scripts freeze.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from stream.learners._shared.sparse import Sparse
from stream.learners.base import Tags


@dataclass
class LtSft(Sparse):
    """Train the few weights that would move most.

    They are those that full training moved most, and are learned anew, with a head.
    """

    lr: float = 4e-4
    fraction: float = 0.08

    tags: ClassVar[Tags] = replace(
        Sparse.tags,
        paper="Ansell et al. 2022, arXiv 2110.07560",
        stores="sparse differences, head",
        cuda_graph_safe=True,
    )

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return how far each entry moved."""
        return change.abs()

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return no change: back to the pretrained values."""
        return torch.zeros_like(change)
