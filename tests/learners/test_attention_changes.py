"""Prefix tuning, IA3 and DoRA: their equations in float64, as other code computes them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import DynamicCache

from stream.data.task import Task
from stream.learners.base import Learner
from stream.learners.dora import Dora
from stream.learners.ia3 import Ia3
from stream.learners.prefix_tuning import PrefixTuning
from stream.models.encoder import Encoder
from stream.models.modules.low_rank import Decomposed
from stream.models.places import LinearMap
from stream.models.task_model import TaskModel
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task, tiny_encoder
from tests.learners.test_prompt_tuning import FAMILIES, batch_of

TEXTS = [[5, 23, 31, 9, 11], [7, 41, 8]]


def changed(learner: Learner, family: str = "bert") -> tuple[Encoder, dict[str, nn.Parameter]]:
    """An encoder with the method's modules moved away from their first values; float64."""
    task = made_task("a")
    model = TaskModel(tiny_encoder(model_type=family, **FAMILIES[family]), 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=1)
    learner.start(task)
    encoder = model.encoder.double().eval()
    added = {n: p for n, p in encoder.named_parameters() if n not in encoder.pretrained}
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in added.values():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(noise, alpha=0.3)
    return encoder, added


def plain(family: str) -> Encoder:
    """The same encoder without the method; float64."""
    return tiny_encoder(model_type=family, **FAMILIES[family]).double().eval()


def close(found: torch.Tensor, expected: Any) -> None:
    torch.testing.assert_close(
        found.detach(), torch.as_tensor(expected).detach(), rtol=1e-9, atol=1e-11
    )


# --- prefix tuning


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_a_prefix_is_what_transformers_calls_cached_keys_and_values(family: str) -> None:
    """As the peft library does it, but for tokens' positions, which a prefix does not move."""
    encoder, added = changed(PrefixTuning(length=3), family)
    batch = batch_of(TEXTS, 8)
    rows, width = batch.input_ids.shape
    parts = list(added.values())  # keys and values of the first layer, then of the second
    heads = [p.unflatten(1, (2, 8)).transpose(0, 1).expand(rows, -1, -1, -1) for p in parts]
    body: Any = plain(family).body
    start = 2 if family == "roberta" else 0
    with torch.no_grad():
        expected = body(
            input_ids=batch.input_ids,
            attention_mask=torch.cat([torch.ones(rows, 3).long(), batch.attention_mask], dim=1),
            position_ids=torch.arange(width).expand(rows, -1) + start,
            cache=DynamicCache([(heads[0], heads[1]), (heads[2], heads[3])]),
        ).last_hidden_state
    _, tokens = encoder.states(batch)
    for row, text in enumerate(TEXTS):
        close(tokens[row, : len(text)], expected[row, : len(text)])


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_prefixed_attention_is_the_formula(family: str) -> None:
    """softmax(Q [P_K; K]^T / sqrt(d) + bias) [P_V; V]: no bias on a prefix, no padding."""
    encoder, added = changed(PrefixTuning(length=3), family)
    module = encoder.layers()[1].get_submodule(
        "attention.attn" if family == "mpnet" else "attention.self"
    )
    seen: dict[str, Any] = {}

    def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        bias = args[2] if len(args) > 2 else torch.zeros(2, 2, 8, 8)
        seen.update(x=(args[0] if args else kwargs["hidden_states"]), bias=bias, out=output[0])

    module.register_forward_hook(note, with_kwargs=True)
    with torch.no_grad():
        encoder.states(batch_of(TEXTS, 8))
    x, bias = seen["x"].numpy(), seen["bias"].numpy()
    assert (np.abs(bias).max() > 0) == (family == "mpnet")
    linears = [c for c in module.children() if isinstance(c, nn.Linear)]
    maps = [tuple(p.detach().numpy() for p in linear.parameters()) for linear in linears]
    keys, values = (p.detach().numpy() for p in list(added.values())[2:])
    for row, text in enumerate(TEXTS):
        h = x[row, : len(text)]
        q, k, v = (h @ weight.T + shift for weight, shift in maps[:3])
        k, v = np.concatenate([keys, k]), np.concatenate([values, v])
        mixed = []
        for head in range(2):
            of = slice(8 * head, 8 * head + 8)
            scores = q[:, of] @ k[:, of].T / math.sqrt(8)
            scores[:, 3:] += bias[row, head, : len(text), : len(text)]
            weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            mixed.append(weights @ v[:, of])
        expected = np.concatenate(mixed, axis=1)
        if family == "mpnet":
            expected = expected @ maps[3][0].T + maps[3][1]
        close(seen["out"][row, : len(text)], expected)


@pytest.mark.parametrize("family", ["electra", "mpnet"])
def test_padding_and_neighbours_do_not_reach_a_prefix(family: str) -> None:
    encoder, _ = changed(PrefixTuning(length=3), family)
    alone, _ = encoder.states(batch_of(TEXTS[1:], 3))
    wide, _ = encoder.states(batch_of([TEXTS[1], [9] * 14], 16))
    close(wide[:1], alone)


def test_attention_dropout_is_that_of_the_module() -> None:
    """Off where all else is off, on with its own rate while learning."""
    run = Stream(PrefixTuning(length=3), [made_task("a")])
    run.learner.start(run.tasks[0])
    for module in run.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    batch, encoder = batch_of(TEXTS, 8), run.model.encoder.train()
    assert torch.equal(encoder(batch), encoder(batch))
    for layer in encoder.layers():
        layer.get_submodule("attention.self.dropout").p = 0.5
    assert not torch.equal(encoder(batch), encoder(batch))


# --- IA3


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_ia3_is_the_encoder_with_factors_in_its_weights(family: str) -> None:
    """Rows of the key and value maps, and columns of the feed-forward's second map."""
    encoder, added = changed(Ia3(), family)
    folded = plain(family)
    with torch.no_grad():
        for name, factors in added.items():
            owner = folded.get_submodule(name.removesuffix(".ia3.factors"))
            assert isinstance(owner, nn.Linear)
            if name.split(".")[-3] in ("key", "value", "k", "v"):
                owner.weight *= factors[:, None]
                owner.bias *= factors
            else:
                assert name.endswith(".output.dense.ia3.factors")
                owner.weight *= factors
    batch = batch_of(TEXTS, 8)
    close(encoder(batch), folded(batch))
    assert len(added) == 2 * 3
    assert not torch.allclose(encoder(batch), plain(family)(batch), atol=1e-3)


# --- DoRA


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_dora_is_the_encoder_with_its_maps_replaced(family: str) -> None:
    """m (W + (alpha / r) B A) / |W + (alpha / r) B A|, a norm for each output."""
    encoder, added = changed(Dora(rank=3, alpha=6.0), family)
    merged = plain(family)
    with torch.no_grad():
        for name in [n for n in added if n.endswith(".magnitude")]:
            stem = name.removesuffix(".magnitude")
            down, up = added[f"{stem}.down.weight"].numpy(), added[f"{stem}.up.weight"].numpy()
            weight = merged.get_submodule(stem.removesuffix(".dora")).weight
            moved = weight.numpy() + 6.0 / 3 * up @ down
            lengths = np.sqrt((moved**2).sum(1, keepdims=True))
            weight.copy_(torch.from_numpy(added[name].numpy()[:, None] * moved / lengths))
    batch = batch_of(TEXTS, 8)
    close(encoder(batch), merged(batch))
    assert not torch.allclose(encoder(batch), plain(family)(batch), atol=1e-3)


def test_no_gradient_of_dora_goes_through_the_norm() -> None:
    """Equation 11: with C = |V| a constant, dL/dV = (m / C) dL/dW' for V = W + c B A."""
    torch.manual_seed(0)
    linear = nn.Linear(5, 4).double()
    change = Decomposed(LinearMap(linear), 2, 6.0).double()
    linear.register_forward_hook(change.change)
    with torch.no_grad():
        for parameter in change.parameters():
            parameter.normal_()
    x = torch.randn(7, 5, dtype=torch.float64)
    slopes = torch.randn(7, 4, dtype=torch.float64)  # dL/dy of L = <slopes, y>
    (linear(x) * slopes).sum().backward()
    by_weight = (slopes.T @ x).numpy()  # dL/dW'
    down, up, length, weight = (
        p.detach().numpy()
        for p in (change.down.weight, change.up.weight, change.magnitude, linear.weight)
    )
    moved = weight + 3.0 * up @ down
    norms = np.sqrt((moved**2).sum(1, keepdims=True))
    by_moved = length[:, None] / norms * by_weight
    close(change.up.weight.grad, 3.0 * by_moved @ down.T)
    close(change.down.weight.grad, 3.0 * up.T @ by_moved)
    close(change.magnitude.grad, (by_weight * moved / norms).sum(1))


# --- what they start from, train and store


@pytest.mark.parametrize("make", [Ia3, Dora])
@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_nothing_is_changed_at_first(make: type[Learner], family: str) -> None:
    task, learner = made_task("a"), make()
    model = TaskModel(tiny_encoder(model_type=family, **FAMILIES[family]), 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=1)
    learner.start(task)
    batch = batch_of(TEXTS, 8)
    expected = tiny_encoder(model_type=family, **FAMILIES[family]).eval()(batch)
    assert torch.equal(model.encoder.eval()(batch), expected)


@pytest.mark.parametrize(
    ("learner", "count"),
    [
        (PrefixTuning(length=7), 2 * 2 * 7 * 16),
        (PrefixTuning(length=7, mlp=True, mlp_size=9), 2 * 2 * 7 * 16),
        (Ia3(), 2 * (16 + 16 + 32)),
        (Dora(rank=3), 2 * 2 * (3 * (16 + 16) + 16)),
    ],
)
def test_the_ledger_counts_what_the_formula_says(
    learner: Learner, count: int, three_tasks: list[Task]
) -> None:
    run = Stream(learner, three_tasks)
    before = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    whole = sum(p.numel() for n, p in before.items() if n in run.model.encoder.pretrained)
    for task in three_tasks:
        fit(learner, task, SHORT)
    heads = [17 * 2, 17 * 5, 17 * 1]
    assert [learner.num_trained(t) for t in three_tasks] == [count + head for head in heads]
    stored, size = count_stored(learner.stored_states(three_tasks))
    assert stored == whole + 3 * count + sum(heads)
    assert size == 4 * stored
    for name in run.model.encoder.pretrained:
        assert torch.equal(run.model.encoder.get_parameter(name), before[name])
    named = learner.task_state("b").keys() & learner.task_state("c").keys()
    assert named
    for name in named:
        assert not torch.equal(learner.task_state("b")[name], learner.task_state("c")[name])
