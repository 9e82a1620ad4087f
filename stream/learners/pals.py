"""Projected attention layers: multi-task learning with a little of each task's own.

Stickland & Murray 2019 (arXiv 1902.02671): LN(h + SA(h) + TS(h)) in every layer, TS(h) =
V_D MHA(V_E h) a task's own (section 2.3), the encoder trained by all tasks together. Tasks are
drawn with probability N_i ** a, a = 1 - 0.8 (e - 1) / (E - 1) in epoch e of E (section 3.2). All
tasks are seen at once: a reference, not continual learning. Deviations: as many steps in all as
tasks would have had apart, in ``training.epochs`` epochs of equal length.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch

from stream.config.run import TrainingConfig
from stream.data.batches import Batch, collate, training_rows
from stream.data.task import Task
from stream.errors import require, require_effect
from stream.learners._shared.inserted import draw_into
from stream.learners.joint import Joint
from stream.learners.workload import Epoch, Workload, planned_work
from stream.models.heads import TaskModel
from stream.models.modules.active_tasks import Use
from stream.models.modules.projected_attention import add_pals
from stream.seeding import numpy_generator, torch_generator


@dataclass
class Pals(Joint):
    """Train the encoder on all tasks at once, and attention of ``size`` units for each task."""

    lr: float = 1e-4
    size: int = 204
    attention_heads: int = 6

    def __post_init__(self) -> None:
        """Refuse heads that do not divide the size."""
        super().__post_init__()
        fits = self.attention_heads >= 1 and self.size % self.attention_heads == 0
        require(
            fits and self.size >= 1,
            f"learner.size must be a multiple of learner.attention_heads, got {self.size} and "
            f"{self.attention_heads}",
        )
        otherwise = "with learner=pals: leave it out"
        require_effect(self, "learner.prefix", used=False, otherwise=otherwise)

    def begin_stream(
        self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int
    ) -> None:
        """Put the tasks' attention in, drawn for their names."""
        encoder, names = model.encoder, [task.name for task in tasks]
        self._use = Use(names[:1])
        add_pals(encoder, names, self.size, self.attention_heads, self._use)
        for name in names:
            draw_into(encoder, torch_generator(seed, "pals", name), f".pals.{name}.")
        encoder.to(model.device)
        super().begin_stream(model, tasks=tasks, seed=seed, pad_id=pad_id)

    @property
    def serves_together(self) -> bool:
        """Never: a batch is of the task whose attention is read."""
        return False

    def _plan(self, task: Task, training: TrainingConfig) -> list[list[tuple[Task, np.ndarray]]]:
        """Return (task, rows) of every step of every epoch, a pure function of the names."""
        group = sorted(self._group(task), key=lambda member: member.name)
        rows = [len(member.split("train")) for member in group]
        steps = sum(planned_work(number, training).steps for number in rows)
        generator = numpy_generator(self.seed, "pals", *(member.name for member in group))
        batches = [self._endless(member, training.batch_size) for member in group]
        plan = []
        for part in np.array_split(np.arange(steps), training.epochs) if group else []:
            progress = len(plan) / max(training.epochs - 1, 1)
            weights = np.array(rows, np.float64) ** (1 - 0.8 * progress)
            drawn = generator.choice(len(group), len(part), p=weights / weights.sum())
            plan.append([(group[index], next(batches[index])) for index in drawn])
        return plan

    def _endless(self, task: Task, batch_size: int) -> Iterator[np.ndarray]:
        """Yield the rows of batches of a task, epoch after epoch."""
        for epoch in count():
            yield from training_rows(task, batch_size, self.seed, epoch)

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of all tasks; nothing after the first."""
        plan = self._plan(task, training)
        steps = [step for epoch in plan for step in epoch]
        return Workload(len(plan), len(steps), sum(len(rows) for _, rows in steps))

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        for member, rows in self._plan(task, epoch.training)[epoch.index]:
            yield collate([(member, member.split("train"), rows)], self.pad_id)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of one batch, through its task's attention."""
        self._use.names = [batch.parts[0].task.name]
        return super().loss(batch)

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Read the task's attention inside the block."""
        before, self._use.names = self._use.names, [task.name]
        try:
            with super().serving(task):
                yield
        finally:
            self._use.names = before

    def served_state(self, task: str) -> dict[str, torch.Tensor]:
        """Return what a prediction for ``task`` reads: no other task's attention."""
        state = super().served_state(task)
        return {n: t for n, t in state.items() if ".pals." not in n or f".pals.{task}." in n}
