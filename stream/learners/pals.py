"""Projected attention layers: multi-task learning with a little of each task's own.

Stickland & Murray 2019 (arXiv 1902.02671): LN(h + SA(h) + TS(h)) in every layer, TS(h) =
V_D MHA(V_E h) a task's own (section 2.3), the encoder trained by all tasks together. Tasks are
drawn with probability N_i ** a, a = 1 - 0.8 (e - 1) / (E - 1) in epoch e of E (section 3.2). All
tasks are seen at once: a reference, not continual learning. The equation has no nonlinearity
behind V_D; the released code (modeling.py, ``BERTPals``) has a GELU there: ``activation=gelu``.
Deviations: as many steps in all as tasks would have had apart, in ``training.epochs`` epochs of
equal length; no dropout of the attention's weights, which the released code has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np

from stream.config.run import TrainingConfig
from stream.config.setting import WIDEST, at_least, setting
from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Task
from stream.errors import require
from stream.learners.base import Tags
from stream.learners.joint import Joint
from stream.learners.workload import Epoch, Workload, planned_work
from stream.models.encoder import Encoder
from stream.models.modules.projected_attention import PalArchitecture, add_pals
from stream.seeding import numpy_generator


@dataclass
class Pals(Joint):
    """Train on all tasks, attention for each.

    The encoder is trained by all tasks at once, projected attention by each task alone.

    Attributes:
        size: units of a task's projected attention.
        attention_heads: heads of a task's attention; they divide ``size``.
        activation: what a task's attention goes through at the end: ``identity`` as in the paper's
            equation, ``gelu`` as in the released code.
        prefix: belongs to ``joint``.
    """

    lr: float = 1e-4
    size: int = setting(204, at_least(1, WIDEST))
    attention_heads: int = setting(6, at_least(1, WIDEST))
    activation: str = setting("identity", ("identity", "gelu"))
    prefix: bool = setting(default=False, idle="with learner=pals: leave it out")

    tags: ClassVar[Tags] = replace(
        Joint.tags,
        paper="Stickland & Murray 2019, arXiv 1902.02671",
        stores="attention, head",
        class_incremental=False,  # a text passes through the attention of its task
    )

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless the attention heads divide the size."""
        super().__post_init__()
        require(
            self.size % self.attention_heads == 0,
            f"learner.size must be a multiple of learner.attention_heads, got {self.size} and "
            f"{self.attention_heads}",
        )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the attention of every task."""
        super().setup(encoder, task_names)
        architecture = PalArchitecture(self.size, self.attention_heads, self.activation)
        add_pals(encoder, task_names, architecture, self.active)

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
        own = planned_work(len(task.split("train")), training).epochs if plan else 0
        examples = sum(len(rows) for _, rows in steps)
        return Workload(len(plan), len(steps), examples, passes=own)

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield the batches of one epoch, each to go through its task's attention."""
        for member, rows in self._plan(task, epoch.training)[epoch.index]:
            self.active.show(self.sources(member.name))
            yield collate([(member, member.split("train"), rows)], self.pad_id)
