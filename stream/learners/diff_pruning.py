"""Diff pruning, isolated per task (Guo et al. 2021, arXiv 2012.07463, sections 3.1 to 3.3).

A task learns a difference z w from the pretrained weights: w dense, z a gate in [0, 1] per entry,
drawn anew each step from a hard-concrete distribution (`stream.models.modules.gates`). The loss
adds ``sparsity`` times the expected number of open gates. Then the ``fraction`` of entries with
the largest |z w| (gates at their median) is kept and trained with the gates gone. ``structured``
multiplies in one gate a matrix or vector. Deviations: one learning-rate schedule and one optimizer
go through both halves; the embedding is among the gated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from stream.config.setting import NOT_NEGATIVE, Range, setting
from stream.data.batches import Batch
from stream.data.task import Task
from stream.learners._shared.sparse import Sparse
from stream.learners.base import Tags
from stream.models.encoder import Encoder
from stream.models.modules.gates import Gates


@dataclass
class DiffPruning(Sparse):
    """Train the few weights that open gates keep.

    A gated difference is learned, then the ``fraction`` of it that is largest, with a head.

    Attributes:
        sparsity: the factor of the penalty: of the expected number of open gates.
        gate_start: where the gates start: log alpha of their distribution; above 0 is open.
        structured: also learn one gate for each matrix and vector.
    """

    fraction: float = 0.005
    sparsity: float = setting(1.25e-7, NOT_NEGATIVE)
    gate_start: float = setting(5.0, Range(-100, 100))
    structured: bool = False

    tags: ClassVar[Tags] = replace(
        Sparse.tags,
        paper="Guo et al. 2021, arXiv 2012.07463",
        stores="sparse differences, head",
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Give every entry a gate, and with ``structured`` every tensor."""
        read = encoder.read_parameters()
        self._gates = {name: Gates(p, structured=self.structured) for name, p in read.items()}
        by_name = {name.replace(".", "/"): gates for name, gates in self._gates.items()}
        self.model.gates = nn.ModuleDict(by_name)

    def begin_task(self, task: Task) -> None:
        """Open the gates."""
        for gates in self._gates.values():
            gates.reset(self.gate_start)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss behind drawn gates, and the penalty of open ones."""
        if self.fit_tensors:
            return super().loss(batch)
        self._dense, self._drawn = self.changes(), {}
        with torch.no_grad():
            for name, change in self._dense.items():
                self._drawn[name] = self._gates[name].draw()
                self.read_parameters[name].copy_(
                    self.task_parameters.first[name] + self._drawn[name] * change
                )
        opened = torch.stack([gates.expected() for gates in self._gates.values()]).sum()
        return super().loss(batch) + self.sparsity * opened

    def after_backward(self, batch: Batch) -> None:
        """Pass the gradients on to the difference and its gates, and put the difference back."""
        super().after_backward(batch)
        if self.fit_tensors:
            return
        with torch.no_grad():
            for name, change in self._dense.items():
                parameter = self.read_parameters[name]
                parameter.copy_(self.task_parameters.first[name] + change)
                if parameter.grad is not None:
                    self._gates[name].pass_on(parameter.grad * change)
                    parameter.grad.mul_(self._drawn[name])

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the size of the gated difference."""
        return self.second_start(name, change).abs()

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the gated difference."""
        return self._gates[name].draw(middle=True) * change
