"""Two ranks against one process: losses, weights, what is kept and the answers are the same."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from stream.config.run import TrainingConfig
from stream.data.shared_head import with_shared_head
from stream.data.task import Task
from stream.distributed.world import World
from stream.evaluation.evaluate import digest, logits_of
from stream.learners.agem import Agem
from stream.learners.base import Learner
from stream.learners.derpp import Derpp
from stream.learners.er_ace import ErAce
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.gem import Gem
from stream.learners.joint import Joint
from stream.learners.l2p import L2p
from stream.learners.lwf import Lwf
from stream.learners.ogd import Ogd
from stream.learners.olora import OLora
from stream.learners.replay import Replay
from stream.learners.si import Si
from stream.models.task_model import TaskModel
from stream.training.fit_state import Step
from stream.training.loop import fit
from stream.training.snapshot import FitSnapshot
from tests.builders import CPU, made_task, tiny_encoder
from tests.distributed.ranks import on_ranks

# 17 rows leave a last batch of one, which is smaller than the world.
TRAINING = TrainingConfig(epochs=1, min_steps=0, batch_size=8)
SIZES = {"a": (2, 17), "b": (3, 10), "c": (None, 5)}
MAKE: dict[str, Callable[[], Learner]] = {
    "finetune": Finetune,
    "replay": partial(Replay, replayed=5),
    "ewc": partial(Ewc, fisher_rows=4),
    "si": Si,
    "joint": Joint,
    "agem": partial(Agem, replayed=5),
    "gem": partial(Gem, replayed=3),
    "ogd": partial(Ogd, directions=2),
    "lwf": Lwf,
    "derpp": partial(Derpp, replayed=5),
    "er_ace": partial(ErAce, replayed=5),
    "olora": OLora,
    "l2p": partial(L2p, diversify=True, taken=2),
}


def without_dropout(
    learner: Learner,
    tasks: list[Task],
    *,
    mask: str = "none",
    precision: str = "float32",
    device: torch.device = CPU,
) -> Learner:
    """Attach a learner to a tiny encoder that draws nothing while it learns."""
    body = tiny_encoder(
        num_hidden_layers=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    ).to(device)
    model = TaskModel(body, 0, dropout=0.0, mask=mask, precision=precision)
    learner.attach(model, tasks=tasks, seed=0, pad_id=0)
    return learner


def learned(learner: Learner, tasks: list[Task]) -> dict[str, Any]:
    """Learn tasks; return losses, answers and all that is kept, as lists and tensors."""
    losses = [fit(learner, task, TRAINING).losses for task in tasks]
    state = {**learner.shared_state()}
    for task in tasks:
        state |= learner.served_state(task.name)
    answers = [logits_of(learner, [task], "test", 64, CPU)[0] for task in tasks]
    return {
        "losses": losses,
        "state": {name: tensor.detach().clone() for name, tensor in state.items()},
        "answers": answers,
    }


def every_learner() -> dict[str, dict[str, Any]]:
    """Have every learner of the table learn three tasks; and other forms of some of them."""
    found = {}
    for name, make in MAKE.items():
        tasks = [made_task(task, *size) for task, size in SIZES.items()]
        found[name] = learned(without_dropout(make(), tasks), tasks)
    shared = with_shared_head([made_task("a", 2, 9), made_task("b", 3, 9)], [])
    for name in ("er_ace", "finetune"):
        learner = without_dropout(MAKE[name](), shared, mask="batch")
        found[f"{name}, one head"] = learned(learner, shared)
    tasks = [made_task("a", 2, 9)]
    found["finetune, bf16"] = learned(without_dropout(Finetune(), tasks, precision="bf16"), tasks)
    tasks = [made_task(name, *size) for name, size in SIZES.items()]
    learner = without_dropout(Finetune(), tasks)
    answers = logits_of(learner, tasks, "test", 128, CPU)
    found["digests"] = {"of equal weights": [digest(logits) for logits in answers]}
    found["resumed"] = resumed_and_whole()
    return found


class StopError(Exception):
    def __init__(self, state: FitSnapshot):
        super().__init__()
        self.state = state


def resumed_and_whole() -> dict[str, Any]:
    """Learn a task with dropout at once, and in two parts; return both losses."""

    def attached() -> Learner:
        learner = Finetune()
        learner.attach(TaskModel(tiny_encoder(), 0), tasks=[task], seed=0, pad_id=0)
        return learner

    def stop(step: Step) -> None:
        if step.number == 2:
            raise StopError(step.save())

    task = made_task("a", 2, 25)
    whole = fit(attached(), task, TRAINING).losses
    try:
        fit(attached(), task, TRAINING, stop)
    except StopError as error:
        saved = World.now().from_first(error.state)  # as all read one checkpoint
        return {"whole": whole, "resumed": fit(attached(), task, TRAINING, resumed=saved).losses}
    raise AssertionError("it was not stopped")


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, Any]]:
    return every_learner()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, Any]]]:
    return on_ranks(every_learner, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize(
    "name", [*MAKE, "er_ace, one head", "finetune, one head", "finetune, bf16"]
)
def test_two_ranks_learn_what_one_process_does(name: str, alone, together) -> None:
    expected, (first, second) = alone[name], [ranks[name] for ranks in together]
    assert first["losses"] == second["losses"]
    near = 1e-2 if "bf16" in name else 1e-5
    for one, other in zip(expected["losses"], first["losses"], strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=near, atol=near)
    assert expected["state"].keys() == first["state"].keys()
    for key, tensor in expected["state"].items():
        assert torch.equal(first["state"][key], second["state"][key]), key
        torch.testing.assert_close(first["state"][key], tensor, rtol=1e-3, atol=1e-4, msg=key)
    for one, mine, theirs in zip(
        expected["answers"], first["answers"], second["answers"], strict=True
    ):
        assert digest(mine) == digest(theirs)
        torch.testing.assert_close(torch.tensor(one), torch.tensor(mine), rtol=1e-3, atol=1e-4)


def test_equal_weights_give_equal_digests(alone, together) -> None:
    """Whole batches are dealt out, so that their shapes are those of one process."""
    for ranks in together:
        assert ranks["digests"] == alone["digests"]


def test_two_ranks_go_on_bit_for_bit(alone, together) -> None:
    """Each draws its own dropout, from where it stood."""
    for ranks in together:
        assert ranks["resumed"]["resumed"] == ranks["resumed"]["whole"]
    assert together[0]["resumed"] == together[1]["resumed"]
    assert together[0]["resumed"]["whole"] != alone["resumed"]["whole"]
