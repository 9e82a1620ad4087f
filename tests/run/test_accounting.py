"""After a task: which fingerprints are computed anew, and what stops a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stream.errors import IsolationError
from stream.fingerprint import Fingerprinter
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.run.accounting import ServedFingerprints, account
from stream.run.stored import StoredCount
from tests.builders import Stream, made_task
from tests.record.made_record import made_record

TASKS = 6


@dataclass
class Accounted:
    """A learner on a stream of six tasks, as `account` sees its run; tasks are learned at once."""

    kind: str = "bitfit"
    tasks: list[Any] = field(default_factory=lambda: [made_task(n, 2, 8) for n in "abcdef"])

    def __post_init__(self) -> None:
        self.learner = LEARNERS[self.kind]()
        self.stream = Stream(self.learner, self.tasks)
        evaluation = SimpleNamespace(split="test")
        self.config = SimpleNamespace(seed=0, evaluation=evaluation)
        self.record, self.routing = made_record(TASKS), None
        self.stored, self.lasting = StoredCount(), Fingerprinter()

    def learn(self, index: int) -> ServedFingerprints:
        """Learn a task without a step, and account."""
        self.learner.start(self.tasks[index])
        with torch.no_grad():
            for parameter in self.learner.trained_parameters().values():
                parameter.add_(0.01 * (index + 1))
        self.learner.finish(self.tasks[index])
        found = ServedFingerprints(self, index)  # type: ignore[arg-type]
        account(self, index, found)  # type: ignore[arg-type]
        return found

    def anew(self) -> dict[str, str]:
        """The fingerprints of all learned tasks, computed by a fresh object."""
        found = ServedFingerprints(self)  # type: ignore[arg-type]
        return {task.name: found.of(task) for task in self.learner.learned}


@pytest.mark.parametrize("kind", ["bitfit", "progressive", "lt_sft", "finetune"])
def test_fingerprints_of_a_row_are_those_of_all_tensors(kind: str) -> None:
    run = Accounted(kind)
    for index in range(TASKS):
        found = run.learn(index)
        anew = run.anew()
        assert run.record.fingerprints == anew
        assert [found.of(task) for task in run.tasks[: index + 1]] == list(anew.values())


def test_two_tasks_are_looked_at_after_each_however_many_were_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, asked = Accounted(), []
    served = Learner.served_state

    def noted(learner: Learner, task: str) -> dict[str, torch.Tensor]:
        asked.append(task)
        return served(learner, task)

    monkeypatch.setattr(Learner, "served_state", noted)
    for index in range(TASKS - 1):
        asked.clear()
        run.learn(index)
        assert len(asked) == min(index + 1, 2)
        assert run.tasks[index].name in asked


def spoil_own(learner: Learner, task: str) -> None:
    """Change one number that a task owns."""
    next(t for n, t in learner.task_state(task).items() if "encoder" in n).view(-1)[0] += 1


def spoil_data(learner: Learner, task: str) -> None:
    """Change a weight that serves all tasks, behind autograd's back: no version counts it."""
    del task
    frozen = learner.model.encoder.get_parameter("body.embeddings.word_embeddings.weight")
    frozen.data[0, 0] += 1


@pytest.mark.parametrize("spoil", [spoil_own, spoil_data])
def test_a_change_is_found_in_the_end_at_the_latest(
    spoil: Callable[[Learner, str], None],
) -> None:
    run = Accounted()
    for index in range(TASKS - 2):
        run.learn(index)
    looked_at = {task.name for task in ServedFingerprints(run, TASKS - 2).looked_at}  # type: ignore[arg-type]
    spoil(run.learner, next(task.name for task in run.tasks if task.name not in looked_at))
    run.learn(TASKS - 2)
    with pytest.raises(IsolationError, match=r"what serves '.' is not what it was; .* last is 'f'"):
        run.learn(TASKS - 1)


def test_a_change_of_the_task_that_is_looked_at_is_found_at_once() -> None:
    run = Accounted()
    for index in range(3):
        run.learn(index)
    earlier, newest = ServedFingerprints(run, 3).looked_at  # type: ignore[arg-type]
    assert newest.name == "d"
    spoil_own(run.learner, earlier.name)
    with pytest.raises(IsolationError, match=f"what serves '{earlier.name}'"):
        run.learn(3)
