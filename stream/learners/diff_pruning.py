"""Diff pruning, isolated a task (Guo et al. 2021, arXiv 2012.07463, sections 3.1 to 3.3).

A task learns a difference z w from the pretrained weights, w dense and z a gate in [0, 1] an entry,
drawn anew each step from a hard-concrete distribution (Louizos et al. 2018, arXiv 1712.01312):
`stream.models.hard_concrete`. The
loss adds ``sparsity`` times the expected number of open gates. Then the
``fraction`` of entries with the largest |z w| (gates at their median, u = 1/2) is kept and trained
with the gates gone. ``structured`` multiplies in one gate a matrix or vector. Deviations: one
learning-rate schedule and one optimizer go through both halves; the embedding is among the gated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from stream.errors import require
from stream.learners.sparse import Sparse
from stream.models.hard_concrete import expected_open, gate
from stream.models.heads import TaskModel
from stream.tasks.batches import Batch
from stream.tasks.task import Task


@dataclass
class DiffPruning(Sparse):
    """Learn a gated difference, then the ``fraction`` of it that is largest; and a head."""

    fraction: float = 0.005
    sparsity: float = 1.25e-7
    gate_start: float = 5.0
    structured: bool = False

    def __post_init__(self) -> None:
        """Refuse a penalty that rewards."""
        super().__post_init__()
        require(self.sparsity >= 0, f"learner.sparsity must not be negative, got {self.sparsity}")

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Give every entry a gate, and with ``structured`` every tensor."""
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)
        model.gates = nn.ParameterDict()
        for name, parameter in self._read.items():
            model.gates[_key(name)] = nn.Parameter(torch.empty_like(parameter))
            if self.structured:
                scalar = torch.empty((), device=model.device)
                model.gates[_key(name, of_tensor=True)] = nn.Parameter(scalar)
        self._gates = model.gates

    def begin_task(self, task: Task) -> None:
        """Open the gates."""
        super().begin_task(task)
        with torch.no_grad():
            for a in self._gates.values():
                a.fill_(self.gate_start)

    def _gate(self, name: str, *, middle: bool = False) -> tuple[torch.Tensor, ...]:
        """Return (z, dz, z of the tensor, dz of it) of a parameter, drawn or at their median."""
        found = []
        for key in (_key(name), _key(name, of_tensor=True)):
            if key not in self._gates:
                found += [torch.ones(()), torch.zeros(())]
                continue
            a = self._gates[key].detach()
            u = torch.full_like(a, 0.5) if middle else torch.rand_like(a).clamp(1e-6, 1 - 1e-6)
            found += gate(a, u)
        return tuple(part.to(self.model.device) for part in found)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss behind drawn gates, and the penalty of open ones."""
        if self._chosen:
            return super().loss(batch)
        self._dense, self._drawn = self.changes(), {}
        with torch.no_grad():
            for name, change in self._dense.items():
                self._drawn[name] = self._gate(name)
                z = self._drawn[name][0] * self._drawn[name][2]
                self._read[name].copy_(self.bank.first[name] + z * change)
        return super().loss(batch) + self.sparsity * self.expected()

    def expected(self) -> torch.Tensor:
        """Return the expected number of entries whose gates are open."""
        terms = []
        for name in self._read:
            count = expected_open(self._gates[_key(name)])
            if self.structured:
                count = count * expected_open(self._gates[_key(name, of_tensor=True)])
            terms.append(count.sum())
        return torch.stack(terms).sum()

    def after_backward(self) -> None:
        """Pass the gradients on to the difference and its gates, and put the difference back."""
        super().after_backward()
        if self._chosen:
            return
        with torch.no_grad():
            for name, change in self._dense.items():
                parameter, (z, dz, whole, d_whole) = self._read[name], self._drawn[name]
                parameter.copy_(self.bank.first[name] + change)
                if parameter.grad is None:
                    continue
                on_gate = parameter.grad * change
                self._pass_on(_key(name), on_gate * whole * dz)
                if self.structured:
                    self._pass_on(_key(name, of_tensor=True), (on_gate * z).sum() * d_whole)
                parameter.grad.mul_(z * whole)

    def _pass_on(self, key: str, gradient: torch.Tensor) -> None:
        """Add to the gradient of gates, which the penalty gave."""
        penalty = self._gates[key].grad
        self._gates[key].grad = gradient if penalty is None else penalty + gradient

    def importance(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the size of the gated difference."""
        return self.second_start(name, change).abs()

    def second_start(self, name: str, change: torch.Tensor) -> torch.Tensor:
        """Return the gated difference."""
        z, _, whole, _ = self._gate(name, middle=True)
        return z * whole * change


def _key(name: str, *, of_tensor: bool = False) -> str:
    """Return the name of a parameter's gates, or of the one gate of the whole tensor."""
    return f"{'tensor/' if of_tensor else ''}{name}".replace(".", "/")
