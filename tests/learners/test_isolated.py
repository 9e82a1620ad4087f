"""Methods whose tasks own what they change, each against its defining equation."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.func import functional_call

from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.data.batching import collate
from stream.data.task import Task
from stream.fingerprint import tensor_digest
from stream.learners.adapterfusion import AdapterFusion
from stream.learners.bapna import Bapna
from stream.learners.base import Learner
from stream.learners.bitfit import BitFit
from stream.learners.diff_pruning import DiffPruning
from stream.learners.lora import Lora
from stream.learners.lt_sft import LtSft
from stream.learners.pals import Pals
from stream.learners.parallel import Parallel
from stream.learners.pfeiffer import Pfeiffer
from stream.learners.stacked import Stacked
from stream.learners.workload import Epoch
from stream.models.encoder import Encoder, load_encoder
from stream.models.losses import batch_loss
from stream.models.modules.columns import Lateral
from stream.models.modules.composition import Attention
from stream.models.modules.gates import expected_open, gate
from stream.models.modules.low_rank import LowRank
from stream.models.modules.projected_attention import Attention as ProjectedAttention
from stream.models.modules.projected_attention import Projections
from stream.models.places import LinearMap
from stream.run.accounting import count_stored
from stream.seeding import torch_generator
from stream.training.loop import fit
from stream.training.schedule import optimizer_for
from tests.builders import SHORT, Stream, made_task

BASE = {"model_type": "bert"}  # the defaults are those of BERT-base


def bert_base(pooling: str = "cls") -> Encoder:
    """Return BERT-base without values."""
    with torch.device("meta"):
        config = BackboneConfig("base", "random", shape=BASE, pooling=pooling)
        return load_encoder(config, vocabulary_size=30522)


# Counts as published (PAPER.md of the reference: BERT-base, uncased).
@pytest.mark.parametrize(
    ("learner", "count"), [(Pfeiffer(), 894_528), (Lora(rank=8), 12 * 2 * 8 * (768 + 768))]
)
def test_parameters_of_inserted_modules_on_bert_base(learner: Learner, count: int) -> None:
    encoder = bert_base()
    with torch.device("meta"):
        learner.setup(encoder, ["a"])
    added = {n: p for n, p in encoder.named_parameters() if n not in encoder.pretrained}
    assert sum(p.numel() for p in added.values()) == count


def test_bitfit_trains_all_biases_of_bert_base() -> None:
    named = bert_base("pooler").read_parameters()
    assert sum(p.numel() for n, p in named.items() if BitFit().trains(n)) == 102_912


def test_projected_attention_on_bert_base() -> None:
    with torch.device("meta"):
        modules = [Projections(768, 204), *(ProjectedAttention(204, 6) for _ in range(12))]
    assert sum(p.numel() for m in modules for p in m.parameters()) == 1_819_836


class Watched:
    """One sub-layer: F(x), x and what the last LayerNorm reads, all float64."""

    def __init__(self, run: Stream, task: Task):
        place = run.model.encoder.sublayers()[-1]
        seen: dict[str, torch.Tensor] = {}
        layer = run.model.encoder.layers()[-1]
        layer.output.dense.register_forward_hook(lambda m, i, out: seen.update(f=out))
        place.reader.register_forward_pre_hook(lambda m, i: seen.update(x=i[0]))
        place.norm.register_forward_pre_hook(lambda m, i: seen.update(read=i[0]))
        place.norm.register_forward_hook(lambda m, i, out: seen.update(norm=out))
        layer.register_forward_hook(lambda m, i, out: seen.update(out=out))
        for parameter in run.model.encoder.parameters():  # so that everything matters
            with torch.no_grad():
                parameter.add_(
                    torch.randn(parameter.shape, generator=torch_generator(0, "w")) * 0.1
                )
        run.model.eval()
        with torch.no_grad():
            run.model(collate([(task, task.split("test"), np.arange(4))], 0))
        self.place = place
        self.f, self.x, self.read, self.out = (
            seen[name].double().numpy() for name in ("f", "x", "read", "out")
        )
        norm = place.norm
        self.scale, self.shift = (p.detach().double().numpy() for p in norm.parameters())

    def norm(self, values: np.ndarray) -> np.ndarray:
        return normalized(values) * self.scale + self.shift


def normalized(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)


def mlp(adapter, values: np.ndarray) -> np.ndarray:
    weights = {n: p.detach().double().numpy() for n, p in adapter.named_parameters()}
    inner = np.maximum(values @ weights["down.weight"].T + weights["down.bias"], 0)
    return inner @ weights["up.weight"].T + weights["up.bias"]


def begun(learner) -> tuple[Stream, Task]:
    task = made_task("a")
    run = Stream(learner, [task])
    learner.start(task)
    return run, task


def test_pfeiffer_reads_the_norm_of_both_and_adds_to_the_sublayer() -> None:
    run, task = begun(Pfeiffer(reduction=4))
    seen = Watched(run, task)
    adapter = seen.place.end.adapter
    expected = mlp(adapter, seen.norm(seen.f + seen.x)) + seen.f + seen.x
    np.testing.assert_allclose(seen.read, expected, atol=1e-5)


def test_parallel_reads_the_input_scaled() -> None:
    run, task = begun(Parallel(size=4, scale=4.0))
    seen = Watched(run, task)
    expected = seen.f + 4.0 * mlp(seen.place.end.adapter, seen.x) + seen.x
    np.testing.assert_allclose(seen.read, expected, atol=1e-5)


def test_bapna_adds_to_the_layers_output() -> None:
    run, task = begun(Bapna(size=4))
    seen = Watched(run, task)
    adapter, h = run.model.encoder.layers()[-1].adapter, seen.norm(seen.read)
    own = {n: p.detach().double().numpy() for n, p in adapter.norm.named_parameters()}
    read = normalized(h) * own["weight"] + own["bias"]
    np.testing.assert_allclose(seen.out, h + mlp(adapter, read), atol=2e-4)


def test_stacked_reads_the_adapter_below(three_tasks: list[Task]) -> None:
    run = Stream(Stacked(reduction=4), three_tasks[:2])
    fit(run.learner, three_tasks[0], SHORT)
    run.learner.start(three_tasks[1])
    seen = Watched(run, three_tasks[1])
    below, above = (seen.place.end.adapters[name] for name in "ab")
    lower = seen.f + mlp(below, seen.norm(seen.f + seen.x))
    np.testing.assert_allclose(seen.read, seen.f + mlp(above, lower) + seen.x, atol=1e-5)


def test_lora_is_a_low_rank_change() -> None:
    linear = torch.nn.Linear(6, 5)
    change = LowRank(LinearMap(linear), 2, 8.0)
    change.initialize(torch_generator(0, "t"))
    x, out = torch.randn(3, 6), torch.randn(3, 5)
    assert torch.equal(change.change(linear, (x,), out), out)  # B is 0 at first
    with torch.no_grad():
        change.up.weight.normal_()
    a, b = (m.weight.detach().double().numpy() for m in (change.down, change.up))
    expected = out.numpy() + 8.0 / 2 * x.double().numpy() @ a.T @ b.T
    np.testing.assert_allclose(change.change(linear, (x,), out).detach(), expected, atol=1e-5)


def test_lora_against_peft() -> None:
    peft = pytest.importorskip("peft", reason="PEFT is not installed: pip install peft")
    run, task = begun(Lora(rank=2, alpha=6.0))
    batch = collate([(task, task.split("test"), np.arange(6))], 0)
    with torch.no_grad():
        for name, parameter in run.model.encoder.named_parameters():
            if ".lora." in name:
                parameter.normal_(generator=torch_generator(0, name))
    run.model.eval()
    expected = run.model.encoder(batch)
    plain = Stream(BitFit(), [task]).model.encoder.eval()
    config = peft.LoraConfig(r=2, lora_alpha=6, target_modules=["query", "value"], lora_dropout=0.0)
    theirs = peft.get_peft_model(plain.body, config)
    named = dict(run.model.encoder.named_parameters())
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            for mine, other in (("down", "lora_A"), ("up", "lora_B")):
                if f".{other}." in name:
                    stem = name.removeprefix("base_model.model.").partition(f".{other}")[0]
                    parameter.copy_(named[f"body.{stem}.lora.{mine}.weight"])
    plain.body = theirs
    torch.testing.assert_close(plain(batch), expected, rtol=1e-5, atol=1e-5)


def test_hard_concrete_gates_against_draws_and_differences() -> None:
    generator = np.random.default_rng(0)
    for a in (-2.0, 0.0, 1.5):
        u = torch.tensor(generator.uniform(1e-6, 1 - 1e-6, 200_000))
        z, slope = gate(torch.full_like(u, a), u)
        v = u.numpy()
        logit = np.log(v) - np.log1p(-v) + a
        by_hand = np.clip(3 / (1 + np.exp(-logit)) - 1.5, 0, 1)
        np.testing.assert_allclose(z, by_hand, atol=1e-12)
        opened = float(expected_open(torch.tensor(a)))
        assert float((z > 0).double().mean()) == pytest.approx(opened, abs=4e-3)
        step = 1e-6
        ahead, behind = (gate(torch.full_like(u, a + s), u)[0] for s in (step, -step))
        differences = (ahead - behind) / (2 * step)
        smooth = (z > 1e-4) & (z < 1 - 1e-4)
        np.testing.assert_allclose(slope[smooth], differences[smooth], atol=1e-5)
        assert opened == pytest.approx(1 / (1 + math.exp(-a)))  # log(-l / r) is 0


@pytest.mark.parametrize("structured", [False, True])
def test_diff_pruning_passes_gradients_as_autograd_does(structured: bool) -> None:
    sparsity = 1e-3
    run, task = begun(DiffPruning(structured=structured, sparsity=sparsity, gate_start=0.5))
    learner, model = run.learner, run.model.eval()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    batch = collate([(task, task.split("train"), np.arange(6))], 0)
    before = {n: p.detach().clone() for n, p in model.encoder.named_parameters()}
    changes = learner.changes()
    torch.manual_seed(1)
    learner.loss(batch).backward()
    learner.after_backward(batch)
    for name, parameter in model.encoder.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name], rtol=0, atol=1e-6)
    torch.manual_seed(1)
    a = {n: torch.full_like(c, 0.5).requires_grad_() for n, c in changes.items()}
    of_tensor = {n: torch.tensor(0.5).requires_grad_() for n in changes}
    w = {n: c.clone().requires_grad_() for n, c in changes.items()}
    weights, opened = {}, []

    def drawn(of: torch.Tensor) -> torch.Tensor:
        u = torch.rand_like(of).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid(torch.log(u) - torch.log(1 - u) + of) * 3 - 1.5
        return s.clamp(0, 1)

    for name, change in w.items():
        z, many = drawn(a[name]), torch.sigmoid(a[name])
        if structured:
            z = z * drawn(of_tensor[name])
            many = many * torch.sigmoid(of_tensor[name])
        weights[f"encoder.{name}"] = learner.task_parameters.first[name] + z * change
        opened.append(many.sum())
    logits = functional_call(model, weights, (batch,))
    (batch_loss(batch, logits) + sparsity * sum(opened)).backward()
    count = sum(gate.numel() for gate in a.values()) + structured * len(a)
    scale = 1 / (sparsity * math.sqrt(count))  # of gates' gradients, a constant
    for name, change in w.items():
        key = name.replace(".", "/")
        found = model.encoder.get_parameter(name).grad
        torch.testing.assert_close(found, change.grad, rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(
            model.gates[key].entries.grad, scale * a[name].grad.flatten(), rtol=1e-3, atol=1e-6
        )
        if structured:
            found = model.gates[key].whole.grad
            expected = scale * of_tensor[name].grad
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_gates_have_a_rate_of_their_own_and_do_not_decay() -> None:
    run, _ = begun(DiffPruning(lr=1e-4, gate_lr=0.25, structured=True))
    groups = optimizer_for(run.learner, 0.01).param_groups
    rates = {id(p): (g["peak_lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    gates = list(run.model.gates.parameters())
    assert len(gates) == 2 * len(run.learner.read_parameters)
    assert {rates[id(a)] for a in gates} == {(0.25, 0.0)}
    assert {rates[id(p)][0] for p in run.learner.read_parameters.values()} == {1e-4}


class EnoughError(Exception):
    """Ends learning."""


def test_gates_close_within_the_first_stage_of_a_task() -> None:
    """30 steps: few stay open, fewer at a larger penalty; at the weights' rate all would."""
    task, found = made_task("a"), []
    for settings in ({"sparsity": 1e-7}, {"sparsity": 1e-5}, {"gate_lr": 5e-5}):
        learner = DiffPruning(**settings)
        Stream(learner, [task])

        def watch(learner=learner) -> None:
            medians = [gates.draw(middle=True).flatten() for gates in learner._gates.values()]
            found.append(float((torch.cat(medians) > 0).float().mean()))
            raise EnoughError  # the second stage is no part of this

        learner._choose = watch
        with pytest.raises(EnoughError):
            fit(learner, task, TrainingConfig(epochs=10, min_steps=0, batch_size=8))
    assert 0 < found[1] < 0.7 * found[0] < 0.35
    assert found[2] == 1.0


@pytest.mark.parametrize("make", [LtSft, DiffPruning])
def test_sparse_differences_stay_in_budget_and_are_stored_sparse(
    make: Callable, three_tasks: list[Task]
) -> None:
    run = Stream(make(fraction=0.02), three_tasks)
    first = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    run.finish()
    learner, total = (
        run.learner,
        sum(p.numel() for p in run.model.encoder.read_parameters().values()),
    )
    for task in three_tasks:
        owned = learner.task_state(task.name)
        values = {n: t for n, t in owned.items() if n.endswith(".values")}
        changed = sum(t.numel() for t in values.values())
        assert 0 < changed <= round(0.02 * total)
        dense = learner.task_parameters.values(task.name)
        for name, start in first.items():
            if name in dense:
                places = owned.get(f"encoder.{name}.indices", torch.tensor([]))
                assert int((dense[name] != start).sum()) <= len(places)
        head = sum(t.numel() for n, t in owned.items() if n.startswith("heads."))
        assert count_stored([owned]) == (changed + head, 8 * changed + 4 * head)
        assert learner.num_trained(task) == changed + head


def test_lt_sft_keeps_what_moved_most_and_starts_it_again(three_tasks: list[Task]) -> None:
    learner = LtSft(fraction=0.1)
    run = Stream(learner, three_tasks[:1])
    moved: dict[str, np.ndarray] = {}
    choose = learner._choose

    def watch() -> None:
        moved.update({n: c.double().numpy().copy() for n, c in learner.changes().items()})
        choose()
        for name, parameter in run.model.encoder.read_parameters().items():
            assert torch.equal(parameter, learner.task_parameters.first[name])

    learner._choose = watch
    fit(learner, three_tasks[0], SHORT)
    sizes = np.sort(np.concatenate([np.abs(c).ravel() for c in moved.values()]))
    count = round(0.1 * len(sizes))
    for name, change in moved.items():
        found = learner.chosen[name].numpy()
        assert (np.abs(change)[found] >= sizes[-count]).all()
        assert (np.abs(change)[~found] <= sizes[-count]).all()
    assert sum(int(c.sum()) for c in learner.chosen.values()) == count


def test_fusion_is_attention_over_adapters() -> None:
    fusion = Attention(6)
    fusion.initialize(torch_generator(0, "t"))
    np.testing.assert_allclose(fusion.value.weight.detach(), np.eye(6), atol=2e-6)
    with torch.no_grad():
        for parameter in fusion.parameters():
            parameter.normal_()
    hidden, added = torch.randn(2, 3, 6), torch.randn(4, 2, 3, 6)
    named = {n: p.detach().double().numpy() for n, p in fusion.named_parameters()}
    query = hidden.double().numpy() @ named["query.weight"].T + named["query.bias"]
    keys = added.double().numpy() @ named["key.weight"].T + named["key.bias"]
    scores = np.einsum("bld,tbld->tbl", query, keys)
    weights = np.exp(scores - scores.max(0)) / np.exp(scores - scores.max(0)).sum(0)
    values = added.double().numpy() @ named["value.weight"].T
    expected = np.einsum("tbl,tbld->bld", weights, values)
    np.testing.assert_allclose(fusion(hidden, added).detach(), expected, atol=1e-4)


def test_fusion_trains_one_stage_after_the_other(three_tasks: list[Task]) -> None:
    """The adapter moves in the first half alone, the fusion in the second."""
    learner = AdapterFusion()
    run = Stream(learner, three_tasks[:2])
    fit(learner, three_tasks[0], SHORT)
    place = run.model.encoder.sublayers()[-1].end
    seen = []

    def note(step) -> None:
        seen.append(
            (tensor_digest(place.adapters["b"].up.weight), tensor_digest(place.fusion.key.weight))
        )

    fit(learner, three_tasks[1], SHORT, note)
    half = len(seen) // 2
    assert len(set(seen[:half])) == half
    assert len({fusion for _, fusion in seen[:half]}) == 1
    assert len({adapter for adapter, _ in seen[half - 1 :]}) == 1
    assert len({fusion for _, fusion in seen[half:]}) == half
    both = 2 * sum(p.numel() for p in place.adapters["b"].parameters())
    both += 2 * sum(p.numel() for p in place.fusion.parameters())  # in two layers
    assert learner.num_trained(three_tasks[1]) == both + 5 * 16 + 5


def test_lateral_connections_read_every_earlier_column() -> None:
    lateral = Lateral(5, 3, 2)
    lateral.initialize(torch_generator(0, "t"))
    with torch.no_grad():
        for parameter in lateral.parameters():
            parameter.normal_()
    earlier = torch.randn(2, 4, 6, 5)
    named = {n: p.detach().double().numpy() for n, p in lateral.named_parameters()}
    scaled = [s * h.double().numpy() for s, h in zip(named["scales"], earlier, strict=True)]
    inner = np.maximum(np.concatenate(scaled, -1) @ named["down.weight"].T + named["down.bias"], 0)
    expected = inner @ named["up.weight"].T
    np.testing.assert_allclose(lateral(list(earlier)).detach(), expected, atol=1e-4)


def test_projected_attention_ignores_padding_and_is_attention() -> None:
    attention = ProjectedAttention(6, 2)
    attention.initialize(torch_generator(0, "t"))
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.normal_()
    hidden = torch.randn(1, 4, 6)
    mask = torch.tensor([True, True, True, False])[None, None, None]
    weights = [p.detach().double().numpy() for p in attention.parameters()]
    q, k, v = (
        (hidden[0].double().numpy() @ weights[2 * i].T + weights[2 * i + 1]).reshape(4, 2, 3)
        for i in range(3)
    )
    scores = np.einsum("ihd,jhd->hij", q, k)[:, :, :3] / math.sqrt(3)
    parts = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = np.einsum("hij,jhd->ihd", parts, v[:3]).reshape(4, 6)
    np.testing.assert_allclose(attention(hidden, mask)[0].detach(), expected, atol=1e-4)


def test_pals_draw_by_size_less_and_less() -> None:
    """N ** 1 in the first epoch, N ** 0.2 in the last."""
    tasks = [made_task("a", 2, 16), made_task("b", 3, 160)]
    learner = Pals()
    Stream(learner, tasks)
    training = type(SHORT)(epochs=5, min_steps=2000, batch_size=8)
    plan = learner._plan(tasks[0], training)
    shares = [np.mean([task.name == "a" for task, _ in epoch]) for epoch in plan]
    for share, exponent in zip(shares, (1, 0.8, 0.6, 0.4, 0.2), strict=True):
        expected = 16**exponent / (16**exponent + 160**exponent)
        assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / len(plan[0])))
    batches = list(learner.training_batches(tasks[0], Epoch(0, 5, training)))
    assert len(batches) == len(plan[0])
