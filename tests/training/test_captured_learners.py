"""Captured steps of every method that changes losses or gradients; without a GPU, as tapes."""

import itertools

import pytest
import torch

from stream.config.run import TrainingConfig
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.models.heads import TaskModel
from stream.training.engine import Captured, Eager, pick_engine
from stream.training.loop import fit
from tests.conftest import made_task, tiny_encoder
from tests.contract.matrix import made
from tests.training.captured import refusals
from tests.training.taped import graphs_as_tapes

TRAINING = TrainingConfig(epochs=1, min_steps=0, batch_size=8)
CHANGED = [
    name
    for name in LEARNERS
    if LEARNERS[name].tags.makes_steps
    and any(
        getattr(LEARNERS[name], h) is not getattr(Learner, h) for h in ("loss", "after_backward")
    )
]
EAGER = ("gem",)


def losses_of(learner: Learner, engine: str) -> list[float]:
    """Learn three tasks without dropout; return every loss."""
    tasks = [made_task("a", 2, 8), made_task("c", None, 8), made_task("b", 5, 17)]
    body = tiny_encoder(
        num_hidden_layers=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    learner.attach(TaskModel(body, 0, dropout=0.0), tasks=tasks, seed=0, pad_id=0)
    device = torch.device("cuda")
    chosen = pick_engine(engine, learner, device, TRAINING.batch_size, counting=False)
    assert isinstance(chosen, Captured if engine == "captured" else Eager)
    return [*itertools.chain(*(fit(learner, t, TRAINING, engine=chosen).losses for t in tasks))]


@pytest.mark.parametrize("name", [n for n in CHANGED if n not in EAGER])
def test_x(name):
    expected = losses_of(made(name), "eager")
    with graphs_as_tapes(), refusals() as said:
        found = losses_of(made(name), "captured")
    assert said == []
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-5)
