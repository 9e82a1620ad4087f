"""Captured steps of every encoder family; on a GPU against eager ones."""

from collections.abc import Callable

import pytest
import torch

from stream.learners.adapter import Adapter
from stream.learners.base import Learner
from stream.learners.finetune import Finetune
from tests.contract.matrix import shapes
from tests.models.tiny_families import family_encoder
from tests.training.captured import compare, on_the_cpu_side
from tests.training.test_engine import cuda, places_on_the_gpu

EVERY = pytest.mark.parametrize(
    "shape",
    [pytest.param(s, marks=[places_on_the_gpu] if s == "mpnet" else []) for s in shapes()],
)


@EVERY
def test_a_step_has_nothing_that_no_graph_can_hold(shape: str) -> None:
    """Told without a GPU."""
    assert on_the_cpu_side(family_encoder(shape)) == []


@pytest.mark.parametrize("asks", ["item", "any", "copy"])
def test_what_no_graph_can_hold_is_found(asks: str) -> None:
    encoder = family_encoder("bert")

    def ask(module: torch.nn.Module, args: tuple[object, ...], output: torch.Tensor) -> object:
        if asks == "item":
            return output * output.sum().item()
        if asks == "any":
            return output if (output > 0).any() else -output
        return output * torch.ones(16).to(output.device)

    encoder.layers()[0].get_submodule("output").register_forward_hook(ask)
    assert on_the_cpu_side(encoder) != []


@cuda
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("make", [Adapter, Finetune])
@EVERY
def test_captured_steps_learn_what_eager_ones_do(
    shape: str, make: Callable[[], Learner], half: bool
) -> None:
    eager, captured, refusal = compare(shape, make, half=half)
    assert refusal == ""
    rtol, atol = (0.05, 0.02) if half else (1e-4, 1e-5)
    torch.testing.assert_close(torch.tensor(captured), torch.tensor(eager), rtol=rtol, atol=atol)
