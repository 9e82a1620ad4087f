"""Gradients of attention are torch's, and on a GPU they have the same bits every time."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import sdpa_kernel

from stream.data.batch import TokenBatch
from stream.models.precision import ATTENTION
from stream.models.repeatable_attention import repeatable_attention
from stream.models.task_model import TaskModel
from tests.models.noting import Noting
from tests.models.tiny_families import family_encoder, without_dropout

GPU = "cuda"
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def drawn(
    *shape: int, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> list[nn.Parameter]:
    """Return queries, keys and values."""
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape, device=device, dtype=dtype)) for _ in "qkv"]


def gradients(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    """Return those of a sum of what attention makes of them doubled, weighted."""
    made = functional.scaled_dot_product_attention(*(each * 2 for each in parameters))
    weights = torch.linspace(-1, 1, made.numel(), device=made.device, dtype=made.dtype)
    return list(torch.autograd.grad((made.flatten() * weights).sum(), parameters))


def test_gradients_are_torchs() -> None:
    parameters = drawn(2, 4, 8, 16)
    expected = gradients(parameters)
    with repeatable_attention():
        found = gradients(parameters)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("before", ["default", "warn"])
def test_only_the_way_back_through_attention_is_asked_to_be_deterministic(before: str) -> None:
    torch.set_deterministic_debug_mode(before)
    mode = torch.get_deterministic_debug_mode()
    try:
        with Noting() as noting, repeatable_attention():
            gradients(drawn(2, 4, 8, 16))
        assert torch.get_deterministic_debug_mode() == mode
        assert torch.utils.deterministic.fill_uninitialized_memory  # torch's default
    finally:
        torch.set_deterministic_debug_mode("default")
    asked = {name: on for name, on in noting.found.items() if name != "detach.default"}
    assert asked.pop("_scaled_dot_product_flash_attention_for_cpu_backward.default")
    assert "mul.Tensor" in asked  # before and behind it
    assert set(asked.values()) == {before == "warn"}


def test_an_error_on_the_way_back_leaves_nothing_behind() -> None:
    query, key, value = drawn(2, 4, 8, 16)

    def fail(*_: object) -> None:
        raise KeyError

    with pytest.raises(KeyError), repeatable_attention():  # noqa: PT012 - one block, as in a step
        made = functional.scaled_dot_product_attention(query, key, value)
        assert made.grad_fn is not None
        made.grad_fn.register_prehook(fail)  # after that which asks
        made.sum().backward()
    assert not torch.are_deterministic_algorithms_enabled()


def test_without_gradients_nothing_is_noted() -> None:
    with repeatable_attention(), torch.no_grad():
        functional.scaled_dot_product_attention(*drawn(2, 4, 8, 16))


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_bits_every_time(dtype: torch.dtype) -> None:
    """Of one long text, whose keys torch splits otherwise."""
    parameters = drawn(1, 12, 1024, 32, device=GPU, dtype=dtype)
    with sdpa_kernel(ATTENTION), repeatable_attention():
        found = [gradients(parameters) for _ in range(20)]
    for each in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(each, found[0], strict=True))


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_step_of_one_long_text_repeats(precision: str) -> None:
    encoder = without_dropout(family_encoder("bert")).to(GPU)
    model = TaskModel(encoder, 0, dropout=0.0, precision=precision)
    ids = 5 + torch.arange(48, device=GPU)[None] % 7
    mask = torch.ones_like(ids)
    mask[:, 40:] = 0
    batch = TokenBatch(ids, mask, torch.zeros_like(ids), ())
    found = []
    for _ in range(20):
        model.zero_grad()
        with model.computing():
            model.states(batch).texts.square().sum().backward()
        found.append([p.grad.clone() for p in encoder.parameters() if p.grad is not None])
    assert found[0]
    for each in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(each, found[0], strict=True))
