"""Progressive prompts, and prompts that an MLP makes while they are learned."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import functional_call

from stream.data.batch import Batch
from stream.data.batching import collate
from stream.data.task import Task
from stream.learners._shared.reparameterized import Reparameterized
from stream.learners.prefix_tuning import PrefixTuning
from stream.learners.progressive_prompts import ProgressivePrompts
from stream.models.losses import batch_loss
from stream.models.modules.active_tasks import ActiveTasks, Sources
from stream.models.modules.prompt import PromptByTask
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import SHORT, Stream, made_task, tiny_encoder
from tests.contract.from_disk import check_goes_on, evidence
from tests.learners.test_prompt_tuning import FAMILIES, batch_of

THROUGH_MLP = [
    ProgressivePrompts(length=3, mlp=True, mlp_size=5, lr=1e-3),
    PrefixTuning(length=3, mlp=True, mlp_size=5, lr=1e-3),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_reads_all_active_prompts_the_newest_first(family: str) -> None:
    """The pass on their tokens; there are more of them than the encoder has positions."""
    encoder = tiny_encoder(model_type=family, **FAMILIES[family]).double().eval()
    body: Any = encoder.body
    active, generator = ActiveTasks(), torch.Generator().manual_seed(0)
    module = PromptByTask(encoder, ["a", "b", "c"], 18, active)
    tokens = {name: torch.randint(5, 60, (18,), generator=generator) for name in "abc"}
    with torch.no_grad():
        for name, drawn in tokens.items():
            vectors = body.get_input_embeddings().weight[drawn].clone()
            module.prompts[name].vectors = torch.nn.Parameter(vectors)
    encoder.insert_prompt(module)
    start = 2 if family in ("roberta", "mpnet") else 0
    text = [5, 23, 31, 9]
    for names in ("a", "ab"):
        active.show(Sources(tuple(names)))
        prompts = torch.cat([tokens[name] for name in reversed(names)]).tolist()
        with torch.no_grad():
            expected = body(
                input_ids=torch.tensor([[5, *prompts, 23, 31, 9]]),
                attention_mask=torch.ones(1, 4 + len(prompts), dtype=torch.int64),
                position_ids=torch.tensor([[0, *[0] * len(prompts), 1, 2, 3]]) + start,
            ).last_hidden_state
        found, _ = encoder.states(batch_of([text, [5, 9] * 4], 8))
        torch.testing.assert_close(found[:1], expected[:, 0], rtol=1e-9, atol=1e-11)
    assert len(prompts) > body.config.max_position_embeddings


@pytest.mark.parametrize("mlp", [{}, {"mlp": True, "mlp_size": 5}])
def test_the_ledger_counts_a_prompt_and_a_head_for_each_task(
    mlp: dict[str, Any], three_tasks: list[Task]
) -> None:
    """Earlier prompts count once, though they serve later tasks too."""
    learner = ProgressivePrompts(length=3, **mlp)
    run = Stream(learner, three_tasks)
    before = {n: p.detach().clone() for n, p in run.model.encoder.named_parameters()}
    whole = sum(before[n].numel() for n in run.model.encoder.pretrained)
    for task in three_tasks:
        fit(learner, task, SHORT)
    heads = [17 * 2, 17 * 5, 17 * 1]
    assert [learner.num_trained(three_tasks[-1])] == [3 * 16 + heads[2]]
    stored, size = count_stored(learner.stored_states(three_tasks))
    assert stored == whole + 3 * 3 * 16 + sum(heads)
    assert size == 4 * stored
    served = [f"encoder.prompt.prompts.{name}.vectors" for name in "abc"]
    state = learner.served_state("b")
    assert [name for name in served if name in state] == served[:2]
    for name in run.model.encoder.pretrained:
        assert torch.equal(run.model.encoder.get_parameter(name), before[name])


def begun(learner: Reparameterized) -> tuple[Stream, Task, Batch]:
    """One task learned, the second one begun, its first batch."""
    tasks = [made_task("a"), made_task("b", 5)]
    run = Stream(learner, tasks)
    fit(learner, tasks[0], SHORT)
    learner.start(tasks[1])
    run.model.eval()
    run.model.zero_grad()
    return run, tasks[1], collate([(tasks[1], tasks[1].split("train"), np.arange(8))], 0)


@pytest.mark.parametrize("learner", THROUGH_MLP, ids=lambda learner: learner.name)
def test_the_mlp_gets_the_gradient_of_the_loss(learner: Reparameterized) -> None:
    """As if it stood in the encoder: autograd through both at once."""
    run, _, batch = begun(learner)
    mlp, encoder = run.model.reparameterization, run.model.encoder
    names = {id(p): n for n, p in run.model.named_parameters()}
    made = dict(zip((names[id(p)] for p in learner._made), mlp(), strict=True))
    for name, values in made.items():
        torch.testing.assert_close(run.model.get_parameter(name), values)
    loss = batch_loss(batch, functional_call(run.model, made, (batch,)))
    expected = torch.autograd.grad(loss, list(mlp.parameters()))
    learner.loss(batch).backward()
    learner.after_backward(batch)
    for parameter, gradient in zip(mlp.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-7)
        assert gradient.abs().max() > 0
    assert all(encoder.get_parameter(n.removeprefix("encoder.")).grad is None for n in made)


def test_what_is_kept_is_what_the_mlp_made_last() -> None:
    """p + W2 tanh(W1 p + b1) + b2, in float64."""
    learner = ProgressivePrompts(length=3, mlp=True, mlp_size=5, lr=1e-2)
    run, task, _ = begun(learner)
    kept = learner.task_state("a")
    first = learner.task_state("b")["encoder.prompt.prompts.b.vectors"].clone()
    fit(learner, task, SHORT)
    named = {
        n: p.detach().double().numpy() for n, p in run.model.reparameterization.named_parameters()
    }
    p = named["base"]
    inner = np.tanh(p @ named["down.weight"].T + named["down.bias"])
    expected = p + inner @ named["up.weight"].T + named["up.bias"]
    found = learner.task_state("b")["encoder.prompt.prompts.b.vectors"]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5, atol=1e-7)
    assert not torch.equal(found, first)
    assert all(torch.equal(learner.task_state("a")[n], t) for n, t in kept.items())


def test_a_prefix_is_cut_out_of_what_its_mlp_makes() -> None:
    """Keys, then values, of the first layer, then of the next."""
    learner = PrefixTuning(length=3, mlp=True, mlp_size=5, lr=1e-2)
    run, task, _ = begun(learner)
    fit(learner, task, SHORT)
    named = {
        n: p.detach().double().numpy() for n, p in run.model.reparameterization.named_parameters()
    }
    inner = np.tanh(named["base"] @ named["down.weight"].T + named["down.bias"])
    whole = inner @ named["up.weight"].T + named["up.bias"]
    for layer in range(2):
        for place, kind in enumerate(("keys", "values")):
            stem = f"encoder.body.encoder.layer.{layer}.attention.self.prefix.{kind}"
            start = 16 * (2 * layer + place)
            found = learner.task_state("b")[stem].detach()
            np.testing.assert_allclose(found, whole[:, start : start + 16], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        partial(ProgressivePrompts, length=3, mlp=True, mlp_size=5),
        partial(PrefixTuning, length=3, mlp=True, mlp_size=5),
    ],
    ids=["progressive_prompts", "prefix_tuning"],
)
def test_goes_on_bit_for_bit_through_an_mlp(
    make: Callable[[], Reparameterized], three_tasks: list[Task], tmp_path: Path
) -> None:
    run = Stream(make(), three_tasks)
    run.run()
    assert run.matrix.memory() == (2, 2)
    check_goes_on(make, three_tasks, evidence(run, three_tasks), tmp_path)
