"""Captured steps of every method that changes losses or gradients: as tapes, and on a GPU."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners import LEARNERS
from stream.learners._shared.replaying import Replaying
from stream.learners._shared.sparse import Sparse
from stream.learners.base import Learner
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.replay import Replay
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder
from stream.models.losses import batch_loss
from stream.models.task_model import TaskModel
from stream.training import captured
from stream.training.captured import Captured
from stream.training.engine import Eager, pick_engine
from stream.training.loop import fit
from tests.builders import made_task, tiny_encoder
from tests.contract.matrix import made
from tests.training.captured import refusals
from tests.training.streams import races
from tests.training.taped import graphs_as_tapes
from tests.training.test_engine import GPU, cuda, learned

TRAINING = TrainingConfig(epochs=1, min_steps=0, batch_size=8)
EAGER = ("gem",)
Results = tuple[list[float], list[float]]


def changes_steps(name: str) -> bool:
    """Whether a step of a method is more than plain training's."""
    own = (getattr(LEARNERS[name], hook) for hook in ("loss", "after_backward"))
    plain = (Learner.loss, Learner.after_backward)
    return LEARNERS[name].tags.makes_steps and tuple(own) != plain


CHANGED = [name for name in LEARNERS if changes_steps(name) and name not in EAGER]


def still_encoder() -> Encoder:
    """Without dropout, whose masks differ where batches are padded."""
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return tiny_encoder(num_hidden_layers=1, **none)


def tasks_for(learner: Learner) -> list[Task]:
    """The last one has batches of two widths by turns, and one that is not whole.

    Before it a task of classes, and where rows are stored one of scores.
    """
    old = [made_task("a", 2, 8), made_task("c", None, 8)]
    return [*old[: 2 if isinstance(learner, Replaying) else 1], made_task("i", 5, 29)]


def small(name: str, lr: float | None = None) -> Learner:
    """A method that rehearses as many stored rows in every step: fewer than there are.

    One that chooses entries leaves some out.
    """
    learner = made(name)
    learner.lr = lr or learner.lr
    if isinstance(learner, Replaying):
        learner.replayed = 6
    if isinstance(learner, Sparse):
        learner.fraction = 0.3
    return learner


def results_of(learner: Learner, kind: str) -> Results:
    """Learn tasks on the CPU, as if it were a GPU; return the loss of every step, and what is left.

    That is the loss of the last task's rows, and how large the tensors are that are kept.
    """
    tasks = tasks_for(learner)
    learner.attach(TaskModel(still_encoder(), 0, dropout=0.0), tasks=tasks, seed=0, pad_id=0)
    chosen = pick_engine(kind, learner, GPU, TRAINING.batch_size, counting=False)
    assert isinstance(chosen, Captured if kind == "captured" else Eager)
    losses = [*chain(*[fit(learner, task, TRAINING, engine=chosen).losses for task in tasks])]
    rows = np.arange(len(tasks[-1].split("train")))
    batch = collate([(tasks[-1], tasks[-1].split("train"), rows)], 0)
    kept = (tensor.double().norm() for tensor in learner.shared_tensors.values())
    with torch.no_grad():
        left = batch_loss(batch, learner.model.eval()(batch))
    return losses, [float(left), *map(float, kept)]


def close(found: Results, expected: Results) -> None:
    """Check losses, and what is left."""
    one, other = (torch.tensor([*losses, *rest]) for losses, rest in (found, expected))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def both_results(make: Callable[[], Learner]) -> tuple[list[float], list[float], str]:
    """Those of eager and of taped steps, and what the engine says when it gives up."""
    expected, left = results_of(make(), "eager")
    with graphs_as_tapes() as tapes, refusals() as said:
        found, rest = results_of(make(), "captured")
    assert said or sum(tape.replays for tape in tapes) == len(found) > len(tapes) > 2
    return [*expected, *left], [*found, *rest], " ".join(said)


def test_the_methods_whose_steps_are_executed_eagerly_on_a_gpu_are_known() -> None:
    with graphs_as_tapes():
        eager = [
            name
            for name in LEARNERS
            if LEARNERS[name].tags.makes_steps
            and isinstance(pick_engine("auto", LEARNERS[name](), GPU, 8, counting=False), Eager)
        ]
    assert eager == [*EAGER]


@pytest.mark.parametrize("make", [Finetune, Replay, Ewc])
def test_no_operation_could_come_before_one_that_it_needs(make: Callable[[], Learner]) -> None:
    """However late a GPU that others use too comes to do what a stream was given."""
    with graphs_as_tapes() as tapes, races() as found:
        results_of(make(), "captured")
    assert tapes
    assert found.found == []


@pytest.mark.parametrize("name", CHANGED)
def test_a_step_made_again_on_the_same_tensors_learns_what_an_eager_one_does(name: str) -> None:
    """And no operation in it reads a value in Python."""
    expected, found, refusal = both_results(lambda: small(name, lr=1e-3))
    assert refusal == ""
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=1e-5)


@dataclass
class Small(Finetune):
    """Wants small logits: a loss of the method's own, which reads every one of them."""

    weight: float = 1.0

    def loss(self, batch: Batch) -> torch.Tensor:
        logits = self.model(batch)
        return batch_loss(batch, logits) + self.weight * batch.mean(logits[0].square().mean(1))


def test_a_loss_of_ones_own_sees_the_outputs_of_the_task_alone() -> None:
    with graphs_as_tapes(), refusals() as said:
        found = results_of(Small(lr=1e-3), "captured")
    assert said == []
    close(found, results_of(Small(lr=1e-3), "eager"))


def test_a_replay_has_the_dropout_of_the_step_that_it_is_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{__name__}.still_encoder", lambda: tiny_encoder(num_hidden_layers=1))
    with graphs_as_tapes() as tapes, refusals() as said:
        results_of(Small(lr=1e-3, weight=1e3), "captured")
    assert said == []
    assert sum(tape.replays for tape in tapes) > len(tapes)


@dataclass
class Fading(Finetune):
    """Learns less with every step, by a number in Python."""

    factor: float = 1.0

    def loss(self, batch: Batch) -> torch.Tensor:
        return self.factor * super().loss(batch)

    def after_step(self, batch: Batch) -> None:
        self.factor /= 2


def test_a_number_that_changes_is_not_that_of_an_earlier_step() -> None:
    with graphs_as_tapes():
        found = results_of(Fading(lr=1e-3), "captured")
    close(found, results_of(Fading(lr=1e-3), "eager"))


def test_losses_that_are_read_later_are_those_of_their_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU the log reads those of many steps at once."""
    later = lambda log, loss, lr: log._pending.append((loss, lr))  # noqa: E731
    monkeypatch.setattr("stream.training.fit_state._LossLog.add", later)
    with graphs_as_tapes():
        found = results_of(Finetune(lr=1e-3), "captured")
    close(found, results_of(Finetune(lr=1e-3), "eager"))


@dataclass
class Mixing(Finetune):
    """Learns rows of the first task beside those of the present one, in the same batch."""

    def training_batches(self, task: Task, epoch: Epoch) -> Iterator[Batch]:
        for batch in super().training_batches(task, epoch):
            rows = [(each, each.split("train"), np.arange(4)) for each in (task, *self.learned)]
            yield collate(rows, 0) if self.learned else batch


def test_a_batch_of_several_tasks_is_executed() -> None:
    with graphs_as_tapes() as tapes:
        found = results_of(Mixing(lr=1e-3), "captured")
    assert sum(tape.replays for tape in tapes) == 1  # the only batch of the first task
    close(found, results_of(Mixing(lr=1e-3), "eager"))


@dataclass
class Wrong(Finetune):
    """Changes the gradient of a head in a way that no graph can hold."""

    how: str = "item"
    factor: float = 3.5  # below 0 from the fourth step on

    tags = LEARNERS["ewc"].tags

    def training_batches(self, task: Task, epoch: object) -> Iterator[Batch]:
        for batch in super().training_batches(task, epoch):
            self.factor -= 1.0
            yield batch

    def after_backward(self, batch: Batch) -> None:
        gradient = self.model.head(batch.parts[0].task.head_name).weight.grad
        if self.how == "item":
            gradient.mul_(gradient.sum().item())
        elif self.how == "branch" and gradient[0, 0] > 0:
            gradient.neg_()
        elif self.how == "copy":
            gradient.mul_(torch.ones(gradient.shape))
        elif self.how == "python":
            gradient.mul_(self.factor)
        self.seen = gradient.clone()

    def after_step(self, batch: Batch) -> None:
        if self.how == "new":  # that of the shape that was captured last
            with torch.no_grad():
                self.model.head(batch.parts[0].task.head_name).weight.sub_(self.seen)


@pytest.mark.parametrize("how", ["item", "branch", "copy", "python", "new"])
def test_what_no_graph_can_hold_is_found(how: str) -> None:
    expected, found, refusal = both_results(lambda: Wrong(how=how, lr=1e-2))
    differ = not torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=1e-3)
    assert (bool(refusal), differ) == (how in ("item", "branch", "copy"), how in ("python", "new"))


@cuda
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", CHANGED)
def test_captured_steps_of_methods_learn_what_eager_ones_do(
    name: str, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32 padded as in bf16, so that batches with stored examples are captured too."""
    tasks = [made_task("a", 2, 24), made_task("c", None, 24), made_task("b", 5, 29)]
    monkeypatch.setattr(Captured, "_pads", True)
    monkeypatch.setattr(torch.nn.Dropout, "forward", lambda module, values: values)
    replay, replayed = captured._Graph.replay, []

    def noted(graph: captured._Graph, batch: Batch) -> torch.Tensor:
        replayed.append(len(batch))
        return replay(graph, batch)

    monkeypatch.setattr(captured._Graph, "replay", noted)
    with refusals() as said:
        (_, expected), (_, found) = (
            learned(lambda: small(name), tasks, kind, half=half, encoder=still_encoder)
            for kind in ("eager", "captured")
        )
    assert said == []
    assert len(replayed) == sum(map(len, found))  # every step
    near = {"rtol": 0.05, "atol": 0.02} if half else {"rtol": 1e-4, "atol": 1e-5}
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), **near)
