"""Diff pruning, isolated per task (Guo et al. 2021, arXiv 2012.07463, sections 3.1 to 3.3).

A task learns a difference z w from the pretrained weights: w dense, z a gate in [0, 1] per entry,
drawn anew each step from a hard-concrete distribution (`stream.models.modules.gates`). The loss
adds ``sparsity`` times the expected number of open gates. Then the ``fraction`` of entries with
the largest |z w| (gates at their median) is kept and trained with the gates gone. ``structured``
multiplies in one gate a matrix or vector.

Gates have a learning rate of their own: 0.1 in the released code, where a task takes thousands of
steps. Here it is larger, so that gates close within the 50 to 200 steps of a small task. Their
gradients, which are far below AdamW's epsilon (the code's is 1e-8, here it is 1e-6), are multiplied
by a constant, of which AdamW sees nothing else: one over ``sparsity`` times the square root of the
number of gates, so that the penalty's gradient has a norm of at most 1/4. Deviations: one
learning-rate schedule and one optimizer go through both halves, and gradients of weights and gates
are clipped together (the released code: apart); weight decay pulls weights towards 0, not their
difference from the pretrained ones; the embedding is among the gated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from stream.config.setting import NOT_NEGATIVE, POSITIVE, Range, setting
from stream.data.batch import Batch
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
        gate_lr: the learning rate of the gates.
        gate_start: where the gates start: log alpha of their distribution; above 0 is open.
        structured: also learn one gate for each matrix and vector.
    """

    fraction: float = 0.005
    sparsity: float = setting(1.25e-7, NOT_NEGATIVE)
    gate_lr: float = setting(0.3, POSITIVE)
    gate_start: float = setting(5.0, Range(-100, 100))
    structured: bool = False

    tags: ClassVar[Tags] = replace(
        Sparse.tags,
        paper="Guo et al. 2021, arXiv 2012.07463",
        stores="sparse differences, head",
        cuda_graph_safe=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Give every entry a gate, and with ``structured`` every tensor."""
        read = encoder.read_parameters()
        self._gates = {name: Gates(p, structured=self.structured) for name, p in read.items()}
        by_name = {name.replace(".", "/"): gates for name, gates in self._gates.items()}
        self.model.gates = nn.ModuleDict(by_name)
        gates = sum(a.numel() for a in self.model.gates.parameters())
        self._gate_scale = 1 / (self.sparsity * math.sqrt(gates)) if self.sparsity else 1.0

    def learning_rate(self, name: str) -> float:
        """Return that of the gates, or the usual one."""
        return self.gate_lr if name.startswith("gates.") else super().learning_rate(name)

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
            for gates in self._gates.values():
                gates.scale_gradients(self._gate_scale)

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the size of the gated difference."""
        return self.second_start(name, change).abs()

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the gated difference."""
        return self._gates[name].draw(middle=True) * change
