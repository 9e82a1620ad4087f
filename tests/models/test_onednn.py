"""The convolved linear map against nn.Linear and against float64."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from stream.models.onednn import ConvolvedLinear, convolve_linears


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many threads compute; with one, linear maps are not convolutions."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(5,), (3, 7, 5), (0, 5), (2, 1, 1, 5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.usefixtures("threads")
def test_equals_linear_forwards_and_backwards(shape: tuple[int, ...], *, bias: bool) -> None:
    torch.manual_seed(0)
    exact = nn.Linear(5, 4, bias=bias).double()
    fast = ConvolvedLinear(5, 4, bias=bias)
    fast.load_state_dict(exact.state_dict())
    inputs = torch.randn(shape)
    x, exact_x = inputs.clone().requires_grad_(), inputs.double().requires_grad_()
    found, wanted = fast(x), exact(exact_x)
    assert found.shape == wanted.shape
    weight = torch.randn(wanted.shape)
    (found * weight).sum().backward()
    (wanted * weight.double()).sum().backward()
    pairs = [(found, wanted), (x.grad, exact_x.grad)]
    pairs += [(a.grad, b.grad) for a, b in zip(fast.parameters(), exact.parameters(), strict=True)]
    for a, b in pairs:
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-6)


def test_convolves_where_there_are_several_threads(threads: int) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ConvolvedLinear(5, 4)(torch.randn(3, 5))
    names = [event.key for event in profile.key_averages()]
    assert ("aten::conv2d" in names) == (threads > 1)


def test_other_types_go_the_usual_way() -> None:
    layer = ConvolvedLinear(5, 4).double()
    x = torch.randn(2, 5, dtype=torch.float64)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_names_and_parameters_stay() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 2)))
    before = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    convolve_linears(model)
    assert {n: p.data_ptr() for n, p in model.named_parameters()} == before
    assert sum(isinstance(m, ConvolvedLinear) for m in model.modules()) == 2
