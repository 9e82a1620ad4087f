"""Linear maps that are a part of another: their weights, their outputs, and what is put there."""

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from stream.models.families.family import FusedMap
from stream.models.masks import Reading
from stream.models.places import LinearMap, Part

HEADS, WIDTH, IN = 2, 3, 5  # three parts of two heads of three outputs
ALL = torch.arange(3 * HEADS * WIDTH)
ROWS = {
    # [part, head, width] one after the other, as BERT's would be; [head, part, width], as DeBERTa.
    False: [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17]],
    True: [[0, 1, 2, 9, 10, 11], [3, 4, 5, 12, 13, 14], [6, 7, 8, 15, 16, 17]],
}


def made(kind: str) -> nn.Module:
    return nn.Linear(IN, len(ALL)) if kind == "linear" else Conv1D(len(ALL), IN)


@pytest.mark.parametrize("kind", ["linear", "conv1d"])
@pytest.mark.parametrize("by_head", [False, True])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_part_of_a_map(kind: str, by_head: bool, index: int) -> None:
    """Its weights give its outputs; what is put there is there, and nowhere else."""
    module, rows = made(kind), ROWS[by_head][index]
    with torch.no_grad():
        module.bias.normal_()
    linear = LinearMap(module, Part(FusedMap(map="m", part=index, by_head=by_head), HEADS))
    stored = module.weight if kind == "linear" else module.weight.T
    assert torch.equal(linear.weight, stored[rows])
    assert linear.bias is not None
    assert torch.equal(linear.bias, module.bias[rows])
    assert (linear.in_features, linear.out_features) == (IN, HEADS * WIDTH)
    output = module(torch.randn(4, 7, IN))
    assert torch.equal(linear.part.of(output), output[..., rows])
    own = torch.randn(4, 7, HEADS * WIDTH)
    for found, expected in (
        (linear.part.placed(output, own), own),
        (linear.part.plus(output, own), output[..., rows] + own),
    ):
        others = [column for column in range(len(ALL)) if column not in rows]
        assert found.shape == output.shape
        assert torch.equal(found[..., rows], expected)
        assert torch.equal(found[..., others], output[..., others])
    assert torch.equal(linear.part.of(linear.part.placed(output, own)), own)


@pytest.mark.parametrize("kind", ["linear", "conv1d"])
def test_a_whole_map(kind: str) -> None:
    module = made(kind)
    linear = LinearMap(module)
    x, own = torch.randn(4, IN), torch.randn(4, len(ALL))
    torch.testing.assert_close(x @ linear.weight.T + linear.bias, module(x))
    assert (linear.in_features, linear.out_features) == (IN, len(ALL))
    assert torch.equal(linear.part.of(own), own)
    assert torch.equal(linear.part.placed(module(x), own), own)
    assert torch.equal(linear.part.plus(x, 2 * x), x + 2 * x)


def test_a_bias_that_is_added_behind_a_map_is_the_map_s() -> None:
    """DeBERTa's: outputs have it, and what is put in their place has it once."""
    module, bias = nn.Linear(IN, len(ALL), bias=False).double(), torch.randn(6).double()
    linear = LinearMap(module, Part(FusedMap(map="m", part=1, by_head=True), HEADS, bias))
    rows, output = ROWS[True][1], module(torch.randn(4, IN).double())
    assert linear.bias is bias
    torch.testing.assert_close(linear.part.of(output), output[..., rows] + bias)
    placed = linear.part.placed(output, 2 * linear.part.of(output))
    torch.testing.assert_close(placed[..., rows] + bias, 2 * (output[..., rows] + bias))
    assert torch.equal(linear.part.plus(output, 0 * bias.expand(4, -1)), output)


@pytest.mark.parametrize("causal", [False, True])
def test_what_each_token_reads(causal: bool) -> None:
    reading = Reading(causal=causal)
    reading.begin(torch.tensor([[1, 1, 1, 0], [0, 0, 1, 1]]))
    found = reading.readable().expand(2, 1, 4, 4)[:, 0].int().tolist()
    if causal:  # padding reads itself
        expected = [
            [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]],
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]],
        ]
    else:
        expected = [[[1, 1, 1, 0]] * 4, [[0, 0, 1, 1]] * 4]
    assert found == expected
