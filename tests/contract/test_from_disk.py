"""The battery is red on learners that come back from disk as something else."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners._shared.quadratic import QuadraticPenalty
from stream.learners.base import Learner
from stream.learners.bitfit import BitFit
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.olora import OLora
from stream.learners.si import Si
from stream.learners.topk import TopK
from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import Sources
from stream.training.loop import fit
from tests.builders import SHORT, Stream
from tests.contract.from_disk import check_goes_on, check_serves_from_disk, evidence


class OwnList(OLora):
    """Which pairs serve is in a list of its own, which nothing restores."""

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        super().setup(encoder, task_names)
        self.met: list[str] = []

    def end_task(self, task: Task) -> None:
        self.met.append(task.name)

    def sources(self, task: str) -> Sources:
        return Sources([*(name for name in self.met if name != task), task])


class OwnTensor(BitFit):
    """What serves a task is in an attribute instead of `task_tensors`."""

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        self.shift = {name: torch.zeros(()) for name in task_names}

    def end_task(self, task: Task) -> None:
        self.shift[task.name] = torch.ones(())

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        return [
            logits + self.shift[part.task.name]
            for part, logits in zip(batch.parts, super().predict(batch), strict=True)
        ]


class Transposed(TopK):
    """Square matrices of a task come back transposed."""

    def load_task_state(
        self, task: Task, tensors: Mapping[str, torch.Tensor], *, serve_only: bool = False
    ) -> None:
        turned = {n: t.T if t.ndim == 2 and t.shape == t.T.shape else t for n, t in tensors.items()}
        super().load_task_state(task, turned, serve_only=serve_only)


class Rounded(Finetune):
    """What all tasks share is stored in half precision."""

    def shared_state(self) -> dict[str, torch.Tensor]:
        return {name: t.detach().half().float() for name, t in super().shared_state().items()}


class Swapped(TopK):
    """The tasks' own heads are right, but two tensors of the encoder change places."""

    def load_task_state(
        self, task: Task, tensors: Mapping[str, torch.Tensor], *, serve_only: bool = False
    ) -> None:
        first, second = sorted(n for n in tensors if n.endswith("LayerNorm.weight"))[:2]
        swapped = {**tensors, first: tensors[second], second: tensors[first]}
        super().load_task_state(task, swapped, serve_only=serve_only)


class OwnPenalty(Ewc):
    """The importance of earlier tasks is in dictionaries that no checkpoint knows."""

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        super().setup(encoder, task_names)
        self.penalty = QuadraticPenalty({}, self.fit_tensors)

    def begin_task(self, task: Task) -> None:
        self.penalty.begin(self.shared_parameters())


class OwnPath(Si):
    """The path through a task is in attributes alone."""

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        for name in [name for name in self.fit_tensors if name.startswith("path.")]:
            del self.fit_tensors[name]


@pytest.mark.parametrize("kind", [OwnList, OwnTensor, Transposed, Rounded, Swapped])
def test_a_learner_that_serves_otherwise_from_disk_is_told(
    kind: type[Learner], three_tasks: list[Task], tmp_path: Path
) -> None:
    run = Stream(kind(), three_tasks[:2])
    for task in run.tasks:
        fit(run.learner, task, SHORT)
    expected = evidence(run, run.tasks)
    with pytest.raises(AssertionError, match="logits as they come back"):
        check_serves_from_disk(run, kind, tmp_path, expected)


@pytest.mark.parametrize("make", [lambda: OwnPenalty(fisher_rows=2), OwnPath])
def test_a_learner_that_goes_on_otherwise_from_disk_is_told(
    make: Callable[[], Learner], three_tasks: list[Task], tmp_path: Path
) -> None:
    """What it serves comes back right: only learning on from there shows it."""
    run = Stream(make(), three_tasks)
    for task in run.tasks:
        fit(run.learner, task, SHORT)
    with pytest.raises(AssertionError, match="going on from"):
        check_goes_on(make, three_tasks, evidence(run, three_tasks), tmp_path)
