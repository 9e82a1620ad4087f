"""What a captured step may read in Python; on a GPU, which losses are captured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners.adapter import Adapter
from stream.learners.adapterfusion import AdapterFusion
from stream.learners.base import Learner
from stream.learners.olora import OLora
from stream.learners.pals import Pals
from stream.learners.workload import Epoch
from stream.training.capture_guard import CaptureGuard
from tests.builders import Stream, made_task
from tests.training.test_engine import cuda, learned, tasks


@dataclass
class Smoothed(Adapter):
    """Plain tensor operations: may be captured without being told."""

    def loss(self, batch: Batch) -> torch.Tensor:
        return 0.9 * super().loss(batch) + 0.1 * self.model(batch)[0].square().mean()


@dataclass
class Counting(Adapter):
    """Writes what it reads: another loss at every step."""

    def begin_task(self, task: Task) -> None:
        self.steps = 0

    def loss(self, batch: Batch) -> torch.Tensor:
        self.steps += 1
        return super().loss(batch) * self.steps


@dataclass
class Annealed(Adapter):
    """Reads what a hook outside of the captured step changes with the epoch."""

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        self.factor = 1.0 if epoch.index < 3 else 0.25
        yield from super().training_batches(task, epoch)

    def loss(self, batch: Batch) -> torch.Tensor:
        return super().loss(batch) * self.factor


@dataclass
class Restless(Adapter):
    """Reads what changes after every step."""

    def begin_task(self, task: Task) -> None:
        self.factor = 1.0

    def loss(self, batch: Batch) -> torch.Tensor:
        return super().loss(batch) * self.factor

    def after_step(self, batch: Batch) -> None:
        self.factor *= 0.99


def begun(learner: Learner) -> CaptureGuard:
    task = made_task("a")
    run = Stream(learner, [task])
    learner.start(task)
    del run
    return CaptureGuard(learner)


def test_equal_attributes_are_one_state_and_others_another() -> None:
    learner = Restless()
    guard = begun(learner)
    before = guard.state()
    assert guard.state() == before
    assert hash(guard.state()) == hash(before)
    learner.factor = 0.5
    assert guard.state() != before
    learner.factor = 1.0
    assert guard.state() == before


@pytest.mark.parametrize(
    ("one", "other"), [([1, 2], [1, 3]), ((0.5,), (0.25,)), ({"a": 1}, {"a": 2}), ([[1]], [[2]])]
)
def test_what_stands_in_a_list_counts(one: object, other: object) -> None:
    learner = Restless()
    guard = begun(learner)
    learner.factor = one
    before = guard.state()
    learner.factor = other
    assert guard.state() != before


def test_tensors_count_by_identity_and_are_held() -> None:
    """A new tensor at the address of one that is gone is another one."""
    learner = Restless()
    guard = begun(learner)
    states = []
    for _ in range(20):
        learner.fit_tensors["x"] = torch.zeros(64, 8)
        states.append(guard.state())
    assert len(set(states)) == 20


def test_names_what_changes_from_step_to_step() -> None:
    learner = Restless()
    guard, found = begun(learner), []
    for _ in range(12):
        found.append(guard.refusal("shape", guard.state(), guard.attributes()))
        learner.factor *= 0.9
    assert found[0] == ""
    assert "factor from step to step" in found[-1]


def test_what_the_loss_writes_is_named_and_taken_back() -> None:
    learner = Counting()
    guard = begun(learner)
    state, before = guard.state(), guard.attributes()
    learner.steps, learner.new = 3, "x"
    assert "'steps'" in guard.refusal("shape", state, before)
    assert learner.steps == 0
    assert not hasattr(learner, "new")


@cuda
@pytest.mark.parametrize("make", [Smoothed, Annealed, OLora, AdapterFusion, Pals])
def test_a_loss_of_tensor_operations_is_captured(
    make: Callable[[], Learner], caplog: pytest.LogCaptureFixture
) -> None:
    _, expected = learned(make, tasks(), "eager")
    _, found = learned(make, tasks(), "captured")
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)
    assert "eagerly from here" not in caplog.text


@cuda
@pytest.mark.parametrize(("make", "why"), [(Counting, "steps"), (Restless, "factor")])
def test_a_loss_that_reads_what_changes_is_executed_and_says_why(
    make: Callable[[], Learner], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, expected = learned(make, tasks(), "eager")
    _, found = learned(make, tasks(), "captured")
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)
    assert why in caplog.text
