"""Two ranks against one process: losses, weights, what is kept and the answers are the same."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from stream.config.run import TrainingConfig
from stream.data.shared_head import with_shared_head
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
from stream.models.heads import TaskModel
from stream.training.loop import fit
from tests.conftest import CPU, made_task, tiny_encoder
from tests.distributed.ranks import on_ranks

# 25 rows leave a last batch of one, which is smaller than the world.
TRAINING = TrainingConfig(epochs=1, min_steps=0, batch_size=8)
SIZES = {"a": (2, 25), "b": (3, 14), "c": (None, 9)}
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


def without_dropout(learner: Learner, tasks, *, mask: str = "none", precision: str = "float32"):
    """Attach a learner to a tiny encoder that draws nothing while it learns."""
    body = tiny_encoder(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = TaskModel(body, 0, dropout=0.0, mask=mask, precision=precision)
    learner.attach(model, tasks=tasks, seed=0, pad_id=0)
    return learner


def learned(learner: Learner, tasks) -> dict[str, Any]:
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
    """Have every learner of the table learn three tasks; and one head for two of them."""
    found = {}
    for name, make in MAKE.items():
        tasks = [made_task(task, *size) for task, size in SIZES.items()]
        found[name] = learned(without_dropout(make(), tasks), tasks)
    shared = with_shared_head([made_task("a", 2, 14), made_task("b", 3, 9)], [])
    for name in ("er_ace", "finetune"):
        learner = without_dropout(MAKE[name](), shared, mask="batch")
        found[f"{name}, one head"] = learned(learner, shared)
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, Any]]:
    return every_learner()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, Any]]]:
    return on_ranks(every_learner, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("name", [*MAKE, "er_ace, one head", "finetune, one head"])
def test_two_ranks_learn_what_one_process_does(name: str, alone, together) -> None:
    expected, (first, second) = alone[name], [ranks[name] for ranks in together]
    assert first["losses"] == second["losses"]
    for one, other in zip(expected["losses"], first["losses"], strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-5, atol=1e-5)
    assert expected["state"].keys() == first["state"].keys()
    for key, tensor in expected["state"].items():
        assert torch.equal(first["state"][key], second["state"][key]), key
        torch.testing.assert_close(first["state"][key], tensor, rtol=1e-3, atol=1e-4, msg=key)
    for one, mine, theirs in zip(
        expected["answers"], first["answers"], second["answers"], strict=True
    ):
        assert digest(mine) == digest(theirs)
        torch.testing.assert_close(torch.tensor(one), torch.tensor(mine), rtol=1e-3, atol=1e-4)
