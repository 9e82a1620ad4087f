"""Gradients of embeddings are torch's, and on a GPU they have the same bits every time."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from stream.data.batch import TokenBatch
from stream.models.embeddings import RepeatableEmbedding, look_up, make_repeatable, not_few
from tests.models.noting import Noting
from tests.models.tiny_families import FAMILIES, family_encoder, without_dropout

GPU = "cuda"
FOR_FEW = "embedding_backward_feature_kernel"  # torch's name of it
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def kernels_of(compute: Callable[[], None]) -> list[str]:
    """Return the names of the kernels that a GPU executes."""
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=both, acc_events=True) as profiled:  # else torch 2.11 warns
        compute()
        torch.cuda.synchronize()
    return [event.key for event in profiled.key_averages()]


@pytest.mark.parametrize("padding", [None, 0, 3])
def test_the_gradient_is_torchs(padding: int | None) -> None:
    torch.manual_seed(0)
    rows = torch.randint(0, 5, (4, 7))
    ours, theirs = (torch.ones(5, 3, requires_grad=True) for _ in "ab")
    given = torch.randn(4, 7, 3)
    found, expected = (
        look_up(ours, rows, padding),
        functional.embedding(rows, theirs, padding_idx=padding),
    )
    assert torch.equal(found, expected)
    found.backward(given)
    expected.backward(given)
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.equal(ours.grad, theirs.grad)


@pytest.mark.parametrize("device", ["cpu", pytest.param(GPU, marks=[pytest.mark.gpu, needs_cuda])])
def test_gradients_in_bf16_are_summed_in_float32(device: str) -> None:
    """Their relative error is that of one rounding, 2**-9, though 4,000 terms are added."""
    torch.manual_seed(0)
    types = nn.Embedding(2, 16, dtype=torch.bfloat16, device=device)
    make_repeatable(types)
    rows = torch.arange(8000, device=device) % 2
    given = torch.rand(8000, 16, device=device).to(torch.bfloat16)
    types(rows).backward(given)
    assert types.weight.grad is not None
    expected = torch.stack([given.double()[kind::2].sum(0) for kind in (0, 1)])
    torch.testing.assert_close(types.weight.grad.double(), expected, rtol=2**-8, atol=0)


@pytest.mark.parametrize(("texts", "added"), [(32, 0), (33, 2017), (96, 1), (97, 0)])
def test_rows_are_added_where_torchs_kernel_for_few_would_read_them_in_turns(
    texts: int, added: int
) -> None:
    """It reads 1,024 at once, and 3,072 in all; texts of 32 tokens."""
    torch.manual_seed(0)
    rows, given = torch.randint(0, 50, (texts, 32)), torch.randn(texts, 32, 5)
    more, theirs = not_few(rows, given)
    assert (more.numel(), theirs.numel()) == (rows.numel() + added, 5 * (rows.numel() + added))
    found, expected = (
        torch.zeros(50, 5, dtype=torch.float64).index_add_(0, r.flatten(), g.double().view(-1, 5))
        for r, g in ((more, theirs), (rows, given))
    )
    assert torch.equal(found, expected)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("tokens", [32, 33, 48, 64, 96, 97])
def test_torchs_kernel_for_few_rows_never_reads_them_in_turns(tokens: int) -> None:
    rows = torch.randint(0, 50, (32, tokens), device=GPU)
    weights = [torch.randn(50, 384, device=GPU, requires_grad=True) for _ in "ab"]
    given = torch.randn(32, tokens, 384, device=GPU)
    made = look_up(weights[0], rows, None), functional.embedding(rows, weights[1])
    ours, theirs = (kernels_of(lambda m=m: m.backward(given)) for m in made)
    assert any(FOR_FEW in name for name in theirs) == (tokens <= 96)
    assert any(FOR_FEW in name for name in ours) == (tokens <= 32)
    assert weights[0].grad is not None
    assert weights[1].grad is not None
    torch.testing.assert_close(weights[0].grad, weights[1].grad)


@pytest.mark.parametrize("before", [False, True])
def test_only_the_gradient_is_asked_to_be_deterministic(before: bool) -> None:
    weight = torch.ones(5, 3, requires_grad=True)
    torch.set_deterministic_debug_mode("warn" if before else "default")
    mode = torch.get_deterministic_debug_mode()
    try:
        with Noting() as noting:
            look_up(weight, torch.zeros(4, dtype=torch.long), None).sum().backward()
        assert torch.get_deterministic_debug_mode() == mode
    finally:
        torch.set_deterministic_debug_mode("default")
    assert noting.found.pop("embedding_dense_backward.default")
    assert set(noting.found.values()) == {before}


def test_all_embeddings_of_an_encoder_are_repeatable() -> None:
    encoder = family_encoder("bert")
    kinds = {type(m) for m in encoder.modules() if isinstance(m, nn.Embedding)}
    assert kinds == {RepeatableEmbedding}


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_bits_every_time(dtype: torch.dtype) -> None:
    """Few rows, looked up often: the types of the tokens of a wide batch."""
    torch.manual_seed(0)
    types = nn.Embedding(2, 384, device=GPU, dtype=dtype)
    make_repeatable(types)
    rows = (torch.rand(32, 256, device=GPU) < 0.1).long()
    given = torch.randn(32, 256, 384, device=GPU, dtype=dtype)
    found = []
    for _ in range(20):
        types.zero_grad()
        types(rows).backward(given)
        assert types.weight.grad is not None
        found.append(types.weight.grad.clone())
    assert all(torch.equal(each, found[0]) for each in found)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("family", FAMILIES)
def test_all_gradients_of_a_family_repeat(family: str) -> None:
    """Of a wide batch: 192 texts of 24 tokens."""
    encoder = without_dropout(family_encoder(family)).to(GPU)
    ids = 5 + torch.arange(192 * 24, device=GPU).reshape(192, 24) % 7
    batch = TokenBatch(ids, torch.ones_like(ids), torch.zeros_like(ids), ())
    found: list[dict[str, torch.Tensor]] = []
    for _ in range(5):
        encoder.zero_grad()
        encoder(batch).square().sum().backward()
        learned = {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None}
        found.append({name: gradient.clone() for name, gradient in learned.items()})
    differing = [n for n in found[0] if any(not torch.equal(f[n], found[0][n]) for f in found)]
    assert differing == []
