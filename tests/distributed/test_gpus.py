"""Two ranks on two GPUs: captured steps hold the averaging of gradients, and learn the same."""

from typing import Any

import pytest
import torch

from stream.config.run import TrainingConfig
from stream.distributed.world import World
from stream.learners.base import Learner
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.replay import Replay
from stream.training.captured import Captured
from stream.training.engine import pick_engine
from stream.training.loop import fit
from tests.builders import made_task
from tests.distributed.ranks import on_ranks
from tests.distributed.test_training import without_dropout

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
]
TRAINING = TrainingConfig(epochs=4, min_steps=0, batch_size=8)
WAYS = [("eager", "float32"), ("captured", "float32"), ("eager", "bf16"), ("captured", "bf16")]
LEARNERS: dict[str, type[Learner]] = {"finetune": Finetune, "ewc": Ewc, "replay": Replay}


def every_way() -> dict[str, Any]:
    """Have each learner learn two tasks in each way; return losses and weights on the CPU."""
    found = {}
    device = torch.device("cuda", World.now().rank)
    for name, make in LEARNERS.items():
        for engine, precision in WAYS:
            tasks = [made_task("a", 2, 29), made_task("b", 2, 29)]
            learner = without_dropout(make(), tasks, precision=precision, device=device)
            size = World.now().rows_each(TRAINING.batch_size)
            chosen = pick_engine(engine, learner, device, size, counting=False)
            losses, graphs = [], 0
            for task in tasks:
                losses.append(fit(learner, task, TRAINING, engine=chosen).losses)
                graphs += len(chosen._graphs) if isinstance(chosen, Captured) else 0
            if isinstance(chosen, Captured):
                assert graphs
                assert not chosen._refused
            state = learner.served_state("b")
            weights = {key: tensor.detach().cpu() for key, tensor in state.items()}
            found[f"{name} {engine} {precision}"] = losses, weights
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return every_way()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return on_ranks(every_way, tmp_path_factory.mktemp("ranks"))


def assert_near(one: Any, other: Any, *, half: bool) -> None:
    for mine, theirs in zip(one[0], other[0], strict=True):
        near = {"rtol": 0.05, "atol": 0.02} if half else {"rtol": 1e-4, "atol": 1e-4}
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), **near)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_captured_steps_of_two_ranks_learn_what_eager_ones_do(
    name: str, precision: str, alone, together
) -> None:
    half = precision == "bf16"
    for engine in ("eager", "captured"):
        key = f"{name} {engine} {precision}"
        first, second = (ranks[key] for ranks in together)
        assert first[0] == second[0]
        for weight, tensor in first[1].items():
            assert torch.equal(tensor, second[1][weight]), weight
        assert_near(first, alone[key], half=half)
    eager, captured = (together[0][f"{name} {e} {precision}"] for e in ("eager", "captured"))
    assert_near(eager, captured, half=half)
