"""Joint training on all tasks at once: the multi-task upper bound, and exact intransigence.

Multi-task fine-tuning of one encoder with one head per task (MT-DNN, Liu et al. 2019, arXiv
1901.11504, algorithm 1): each step takes one batch of one task, the batches of all tasks in random
order. Deviation: each task gives as many batches as its own training would have had, so small
tasks are passed over more often than large ones.

``prefix=False`` (``joint_final`` in tables): one run on every task of the stream when the first is
learned; later tasks train nothing, and every row of the matrix is served by this one model.
``prefix=True``: at task k a new run on tasks 1..k from the pretrained weights, about T / 2 times
the work: the exact reference of intransigence (Chaudhry et al. 2018, arXiv 1801.10112).
The ledger counts neither the rows of other tasks nor the pretrained weights that it goes back to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Task
from stream.learners.base import Learner, Tags
from stream.learners.workload import Epoch, Workload, planned_work
from stream.models.encoder import Encoder
from stream.seeding import numpy_generator


@dataclass
class Joint(Learner):
    """Train one encoder on all tasks at once.

    Attributes:
        prefix: train anew on tasks 1 to k when task k is learned, instead of once on all tasks.
    """

    lr: float = 5e-5
    head_lr: float | None = 2e-3
    prefix: bool = False

    tags: ClassVar[Tags] = Tags(
        paper="Liu et al. 2019, arXiv 1901.11504",
        stores="head",
        is_reference=True,
        is_multitask=True,
    )

    def trains(self, name: str) -> bool:
        """Return true: everything is trained."""
        return True

    def trains_head(self, name: str, task: Task) -> bool:
        """Return true for the heads of all tasks that are learned together."""
        return any(name == member.head_name for member in self._group(task))

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Keep what training starts from, where it starts anew."""
        named = encoder.named_parameters() if self.prefix else ()
        self._first = {name: p.detach().clone() for name, p in named}

    def _group(self, task: Task) -> Sequence[Task]:
        """Return the tasks that are learned together when it is the turn of ``task``."""
        position = [other.name for other in self.stream_tasks].index(task.name)
        if self.prefix:
            return self.stream_tasks[: position + 1]
        return self.stream_tasks if position == 0 else []

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return one epoch with all batches of all tasks of the group; nothing without any."""
        group = self._group(task)
        plans = [planned_work(len(member.split("train")), training) for member in group]
        steps, examples = sum(p.steps for p in plans), sum(p.examples for p in plans)
        own = planned_work(len(task.split("train")), training).epochs if group else 0
        return Workload(1 if group else 0, steps, examples, passes=own)

    def begin_task(self, task: Task) -> None:
        """With ``prefix`` start encoder and heads anew; train nothing where there is no group."""
        group = self._group(task)
        if self.prefix:
            with torch.no_grad():
                for name, first in self._first.items():
                    self.model.encoder.get_parameter(name).copy_(first)
            self.model.heads.clear()
        for member in group:
            self.model.add_head(member)
        if group:
            self.mark_trained(task)
        else:
            self.model.requires_grad_(requires_grad=False)

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        """Yield every batch of every task of the group, in an order that depends on their names."""
        group = sorted(self._group(task), key=lambda member: member.name)
        steps = [
            (member, rows)
            for member in group
            for index in range(planned_work(len(member.split("train")), epoch.training).epochs)
            for rows in training_rows(member, epoch.batch_size, self.seed, index)
        ]
        generator = numpy_generator(self.seed, "joint", *(member.name for member in group))
        for step in generator.permutation(len(steps)):
            member, rows = steps[step]
            yield collate([(member, member.split("train"), rows)], self.pad_id)
