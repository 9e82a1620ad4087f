"""Where inserted modules stand and what they read, against formulas on the whole encoder."""

import copy
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from stream.data.batching import collate
from stream.data.task import Task
from stream.learners.adapter import Adapter
from stream.learners.adapterfusion import AdapterFusion
from stream.learners.base import Learner
from stream.learners.lora import Lora
from stream.learners.pals import Pals
from stream.learners.parallel import Parallel
from stream.learners.progressive import Progressive
from stream.learners.prompt_tuning import PromptTuning
from stream.learners.stacked import Stacked
from stream.learners.workload import Epoch
from stream.models.modules.active_tasks import Sources
from stream.models.modules.bottleneck import Architecture, Bottleneck
from stream.models.modules.composition import Attention as Fusion
from stream.models.modules.projected_attention import Attention
from stream.seeding import torch_generator
from tests.builders import SHORT, Stream, made_task, tiny_encoder
from tests.learners.test_isolated import Watched, begun, mlp


def batch_of(task: Task, rows: int = 6):
    return collate([(task, task.split("test"), np.arange(rows))], 0)


def randomized(parameters, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)


def test_lora_is_the_merged_encoder() -> None:
    """W + (alpha / r) B A in the query and value maps of every layer."""
    run, task = begun(Lora(rank=2, alpha=6.0))
    named = dict(run.model.encoder.named_parameters())
    randomized(p for name, p in named.items() if ".lora." in name)
    merged = tiny_encoder().eval()
    with torch.no_grad():
        for index, layer in enumerate(merged.layers()):
            for kind in ("query", "value"):
                stem = f"body.encoder.layer.{index}.attention.self.{kind}.lora"
                a, b = (named[f"{stem}.{part}.weight"].double() for part in ("down", "up"))
                layer.get_submodule(f"attention.self.{kind}").weight += (6.0 / 2 * b @ a).float()
    batch = batch_of(task)
    found = run.model.encoder.eval()(batch)
    torch.testing.assert_close(found, merged(batch), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found, tiny_encoder().eval()(batch), atol=1e-2)


def test_a_parallel_adapter_changes_nothing_at_first() -> None:
    run, task = begun(Parallel())
    batch = batch_of(task)
    assert torch.equal(run.model.encoder.eval()(batch), tiny_encoder().eval()(batch))


def test_a_deep_adapter_is_the_formula() -> None:
    """Each hidden layer has the nonlinearity: tanh(W2 tanh(W1 x))."""
    adapter = Bottleneck(Architecture(7, 3, activation="tanh", depth=3))
    assert sum(p.numel() for p in adapter.parameters()) == 2 * 7 * 3 + 7 + 3 + 2 * (3 * 3 + 3)
    randomized(adapter.parameters())
    x = torch.randn(4, 7)
    weights = [p.detach().double().numpy() for p in adapter.parameters()]  # down, inner, up
    hidden = x.double().numpy()
    for weight, bias in zip(weights[0:6:2], weights[1:6:2], strict=True):
        hidden = np.tanh(hidden @ weight.T + bias)
    expected = x.double().numpy() + hidden @ weights[6].T + weights[7]
    np.testing.assert_allclose(adapter(x).detach(), expected, atol=1e-5)


@pytest.mark.parametrize("places", ["both", "attention", "feedforward"])
def test_adapters_stand_where_they_are_asked_for(places: str) -> None:
    run, _ = begun(Adapter(size=4, places=places, depth=2, norm="layer"))
    names = [n for n, _ in run.model.encoder.named_modules() if n.endswith("dropout.adapter")]
    attention = [n for n in names if "attention" in n]
    assert len(names) == (4 if places == "both" else 2)
    assert len(attention) == {"both": 2, "attention": 2, "feedforward": 0}[places]
    adapter = run.model.encoder.get_submodule(names[0])
    assert isinstance(adapter.norm, torch.nn.LayerNorm)
    assert len(adapter.inner) == 1


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 1), (0, 1), (0, -1)])
def test_layers_that_are_left_out_add_nothing(first: int, last: int) -> None:
    """As if their up maps were 0; afterwards all are there again, in a copy of the encoder too."""
    run, task = begun(Adapter(size=4, init_std=0.5))
    encoder, batch = run.model.encoder.eval(), batch_of(task)
    same, other = copy.deepcopy(encoder), copy.deepcopy(encoder)
    with torch.no_grad():
        for place in other.sublayers():
            if first <= place.layer <= last:
                place.end.adapter.up.weight.zero_()
                place.end.adapter.up.bias.zero_()
    expected, whole = other(batch), encoder(batch)
    with run.learner.without_layers(first, last):
        assert torch.equal(encoder(batch), expected)
        assert torch.equal(same(batch), expected)
    assert torch.equal(encoder(batch), whole)
    assert torch.equal(expected, whole) == (first > last)


def two_begun(learner: Learner, three_tasks: list[Task], count: int = 2) -> Stream:
    """All tasks but the last of ``count`` learned without a step, the last one begun."""
    run = Stream(learner, three_tasks[:count])
    for task in three_tasks[: count - 1]:
        learner.start(task)
        learner.finish(task)
    learner.start(three_tasks[count - 1])
    return run


def test_fusion_reads_what_the_sublayer_gives_and_mixes_all_adapters(
    three_tasks: list[Task],
) -> None:
    """f + sum_t softmax(q(f) . k(A_t(h))) v(A_t(h)) with h = LN(f + x), in float64."""
    learner = AdapterFusion(reduction=4)
    run = two_begun(learner, three_tasks)
    learner._fusing = True
    learner.active.show(learner.sources("b"))
    seen = Watched(run, three_tasks[1])
    place = seen.place.end
    h = seen.norm(seen.f + seen.x)
    added = np.stack([mlp(place.adapters[name], h) for name in "ab"])
    named = {n: p.detach().double().numpy() for n, p in place.fusion.named_parameters()}
    query = seen.f @ named["query.weight"].T + named["query.bias"]
    keys = added @ named["key.weight"].T + named["key.bias"]
    scores = np.einsum("bld,tbld->tbl", query, keys)
    weights = np.exp(scores) / np.exp(scores).sum(0)
    mixed = np.einsum("tbl,tbld->bld", weights, added @ named["value.weight"].T)
    np.testing.assert_allclose(seen.read, seen.f + mixed + seen.x, atol=1e-4)
    assert np.abs(mixed).max() > 1e-3


def test_before_its_fusion_a_task_reads_its_own_adapter_alone(three_tasks: list[Task]) -> None:
    """It is `pfeiffer` then: neither the fusion nor another task's adapter matters."""
    learner = AdapterFusion(reduction=4)
    run = two_begun(learner, three_tasks)
    next(learner.training_batches(three_tasks[1], Epoch(0, 4, SHORT)))
    model, batch = run.model.eval(), batch_of(three_tasks[1])
    before = model.encoder(batch)
    fusions = [m for m in model.encoder.modules() if isinstance(m, Fusion)]
    randomized(p for fusion in fusions for p in fusion.parameters())
    randomized(p for n, p in model.encoder.named_parameters() if ".adapters.a." in n)
    assert torch.equal(model.encoder(batch), before)
    next(learner.training_batches(three_tasks[1], Epoch(2, 4, SHORT)))
    assert not torch.allclose(model.encoder(batch), before, atol=1e-2)


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (lambda: Progressive(size=3), ["a", "b", "c"]),
        (lambda: AdapterFusion(reduction=4), ["a", "b", "c"]),
        (lambda: Stacked(reduction=4), ["a", "c"]),
    ],
)
def test_a_third_task_reads_those_of_the_tasks_before(
    make: Callable[[], Learner], read: list[str], three_tasks: list[Task]
) -> None:
    """Changing what another task owns changes its output where its sources say so, only there."""
    learner = make()
    run = two_begun(learner, three_tasks, count=3)
    if isinstance(learner, AdapterFusion):
        learner._fusing = True
    learner.active.show(learner.sources("c"))
    assert list(learner.sources("c").names) == read
    randomized(run.model.encoder.parameters(), seed=1)
    model, batch = run.model.eval(), batch_of(three_tasks[2])
    for name in "abc":
        before = model.encoder(batch)
        randomized(learner.task_modules(name).values())
        assert torch.equal(model.encoder(batch), before) == (name not in read)
    assert learner.sources("a") == Sources(["a"])


@pytest.mark.parametrize("activation", ["identity", "gelu"])
def test_pals_add_projected_attention_of_the_layers_input(activation: str) -> None:
    """TS(h) = g(V_D MHA(V_E h)) with 6 heads of 2, the layer's mask in it, beside F(x) and x."""
    task = made_task("a")
    learner = Pals(size=12, activation=activation)
    run = Stream(learner, [task])
    learner.start(task)
    learner.active.show(learner.sources("a"))
    encoder, seen = run.model.encoder.eval(), {}
    randomized(encoder.parameters())
    place = encoder.sublayers()[-1]
    layer = encoder.layers()[-1]
    layer.register_forward_pre_hook(lambda module, given: seen.update(h=given[0]))
    layer.output.dense.register_forward_hook(lambda m, i, out: seen.update(f=out))
    place.reader.register_forward_pre_hook(lambda m, i: seen.update(x=i[0]))
    place.norm.register_forward_pre_hook(lambda m, i: seen.update(read=i[0]))
    batch = batch_of(task)
    assert not batch.attention_mask.all()
    with torch.no_grad():
        encoder(batch)
        pal = place.end.pals["a"]
        attention = Attention(12, 6)
        attention.load_state_dict(pal.attention.state_dict())
        mask = batch.attention_mask.bool()[:, None, None]
        inner = attention(pal.projections.encode(seen["h"]), mask)
        added = pal.projections.decode(inner)
        if activation == "gelu":
            added = added * (1 + torch.erf(added / math.sqrt(2))) / 2
        expected = seen["f"] + added + seen["x"]
    real = batch.attention_mask.bool()
    torch.testing.assert_close(seen["read"][real], expected[real], rtol=1e-4, atol=1e-4)


def test_pals_draw_with_exact_weights_and_by_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """N ** (1 - 0.8 e / (E - 1)) for e from 0; other tasks are drawn in another order."""
    tasks = [made_task("a", 2, 16), made_task("b", 3, 160)]
    learner, asked = Pals(), []
    Stream(learner, tasks)

    class Recorder:
        def choice(self, count: int, size: int, p: np.ndarray) -> np.ndarray:
            asked.append(p)
            return np.zeros(size, int)

    training = type(SHORT)(epochs=3, min_steps=0, batch_size=8)
    plain = [[task.name for task, _ in epoch] for epoch in learner._plan(tasks[0], training)]
    with monkeypatch.context() as patch:
        patch.setattr("stream.learners.pals.numpy_generator", lambda *names: Recorder())
        learner._plan(tasks[0], training)
    for found, exponent in zip(asked, (1.0, 0.6, 0.2), strict=True):
        expected = np.array([16.0, 160.0]) ** exponent
        np.testing.assert_allclose(found, expected / expected.sum())
    renamed = [Task("aa", tasks[0].spec, tasks[0].splits, tasks[0].hashes), tasks[1]]
    other = Pals()
    Stream(other, renamed)
    again = [[task.name for task, _ in epoch] for epoch in other._plan(renamed[0], training)]
    assert again != [[name.replace("a", "aa") for name in epoch] for epoch in plain]


def test_a_prompt_leaves_as_many_tokens_as_there_were() -> None:
    run, task = begun(PromptTuning(length=5))
    batch = batch_of(task)
    _, tokens = run.model.encoder.eval().states(batch)
    assert tokens.shape[:2] == batch.input_ids.shape


def test_a_prompt_is_drawn_and_its_copy_is_trained_as_it_is() -> None:
    run, _ = begun(PromptTuning(length=4))
    prompt = run.model.encoder.prompt
    table = run.model.encoder.body.get_input_embeddings().weight
    drawn = []
    for seed in range(3):
        prompt.initialize(torch_generator(seed, "any"))
        rows = [int((table == vector).all(1).nonzero().item()) for vector in prompt.vectors]
        drawn.append(tuple(rows))
    assert len(set(drawn)) == 3
    for wanted in (False, True):
        prompt.requires_grad_(wanted)
        copied = copy.deepcopy(prompt)
        assert copied.vectors.requires_grad is wanted
        assert torch.equal(copied.vectors, prompt.vectors)
        assert copied.vectors is not prompt.vectors
