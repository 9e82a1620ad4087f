"""Learning without forgetting (Li & Hoiem 2016, arXiv 1606.09282, equations 1 to 3, figure 2).

L = L_new + strength sum_j L_old,j: for every earlier task j, its head's outputs on the new task's
inputs are held to those that the model gave before this task, by cross-entropy of softmaxes at
temperature ``temperature``. No old row is read. Deviations: an earlier regression's outputs are
held by half the squared error; no warm-up of the new head alone; old heads stay as they are
instead of being trained along, so that the encoder alone answers for old outputs. With one head for
all tasks (``scenario=shared_head``) it is trained along, as in the paper: the softmax over the
classes met before the task is held, once, to that of the encoder and head as they were (LwF in
class-incremental comparisons: van de Ven & Tolias 2019, arXiv 1904.07734).
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from stream.config.setting import NOT_NEGATIVE, POSITIVE, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.sequential import Sequential
from stream.learners.base import Tags
from stream.models.bf16 import to_bf16
from stream.models.heads import States
from stream.models.losses import batch_loss


@dataclass
class Lwf(Sequential):
    """Train one encoder, hold earlier outputs.

    The teacher of earlier outputs is the model before the task.

    Attributes:
        strength: the factor of the loss that holds earlier outputs; 0 is plain fine-tuning.
        temperature: softens the outputs that are compared; higher counts small probabilities more.
    """

    strength: float = setting(3.0, NOT_NEGATIVE)
    temperature: float = setting(2.0, POSITIVE)

    tags: ClassVar[Tags] = replace(
        Sequential.tags,
        paper="Li & Hoiem 2016, arXiv 1606.09282",
        stores="head",
        cuda_graph_safe=True,
    )

    def begin_task(self, task: Task) -> None:
        """Keep the encoder as it is now."""
        self._teacher = copy.deepcopy(self.model.encoder).requires_grad_(requires_grad=False)
        self._teacher.eval()
        if self.model.in_bf16:
            to_bf16(self._teacher)
        named = dict(self._teacher.named_parameters())
        if self.shares_head:
            named |= self._keep_head(task)
        self.fit_tensors.update({name: named[name] for name in self.shared_parameters()})

    def _keep_head(self, task: Task) -> dict[str, torch.Tensor]:
        """Keep the shared head as it is now; return its tensors by their names in the model."""
        head = self.model.head(task.head_name)
        self._old_head = copy.deepcopy(head).eval().requires_grad_(requires_grad=False)
        # Classes that the task brings have no output to hold.
        self._met = max((old.shared.reach for old in self.learned if old.shared), default=0)
        named = self._old_head.named_parameters()
        return {f"heads.{task.head_name}.{name}": parameter for name, parameter in named}

    def _pairs(self, now: States, before: States) -> Iterator[tuple[Task, Tensor, Tensor]]:
        """Yield each earlier task with its outputs now and before; a shared head's once."""
        if self.shares_head:
            old = self.learned[-1]
            outputs = self.model.answer(old, now), self._old_head(before.texts)
            after, then = (each[:, : self._met] for each in outputs)
            yield old, after, then
            return
        for old in self.learned:
            yield old, self.model.answer(old, now), self.model.answer(old, before)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss on the new task, and on what earlier heads say of its rows."""
        states = self.model.states(batch)
        loss = batch_loss(batch, self.model.answers(states, batch))
        if not (self.strength and self.learned):
            return loss
        with torch.no_grad():
            texts, tokens = self._teacher.states(batch)
        before = States(texts.float(), tokens, batch.attention_mask)
        for old, now, then in self._pairs(states, before):
            loss = loss + self.strength * batch.mean(
                distillation_loss(old, now, then, self.temperature)
            )
        return loss


def distillation_loss(
    task: Task, now: torch.Tensor, before: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Return the losses [B] that hold outputs ``now`` [B, K] to those ``before`` [B, K]."""
    if task.is_regression:
        return (now - before).square().mean(1) / 2
    ends = 2 if task.is_span else 1  # first and last token are two choices among L
    now, before = (each.unflatten(1, (-1, ends)) for each in (now, before))
    target = (before / temperature).softmax(1)
    return -(target * (now / temperature).log_softmax(1)).sum(1).mean(1)
