"""Gradient checkpointing: gradients are those of a step that keeps everything, dropout included."""

import copy

import numpy as np
import pytest
import torch

from stream.config.backbone import BackboneConfig
from stream.data.batching import collate
from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.learners.bapna import Bapna
from stream.learners.finetune import Finetune
from stream.learners.frozen import Frozen
from stream.learners.lora import Lora
from stream.learners.pals import Pals
from stream.learners.prefix_tuning import PrefixTuning
from stream.learners.progressive import Progressive
from stream.learners.prompt_tuning import PromptTuning
from stream.models.encoder import load_encoder
from stream.models.places import Uses
from stream.models.recomputing import recompute_layers
from stream.models.task_model import TaskModel
from stream.training.engine import pick_engine
from tests.builders import CPU, VOCABULARY, made_task, tiny_encoder
from tests.models.tiny_families import FAMILIES


def gradients(make, *, recomputed: bool, family: str = "bert"):
    """Loss and gradients of one step in float64, and how often each layer was computed."""
    tasks = [made_task("before"), made_task("a", 3)]
    encoder = load_encoder(
        BackboneConfig("tiny", "random", shape=FAMILIES[family], pooling="mean"),
        vocabulary_size=VOCABULARY,
    )
    if recomputed:
        encoder.checkpoint_layers()
    learner = make()
    learner.attach(TaskModel(encoder, 0), tasks=tasks, seed=0, pad_id=0)
    before, task = tasks
    if learner.tags.is_multitask:  # it learns all tasks when it meets the first one
        task = before
    else:
        learner.start(before)
        learner.finish(before)
    learner.start(task)
    model = learner.model.double().train()
    runs = [0]
    for layer in encoder.layers():
        layer.register_forward_pre_hook(lambda *_: runs.__setitem__(0, runs[0] + 1))
    torch.manual_seed(0)
    loss = torch.zeros((), dtype=torch.float64)
    for rows in (np.arange(8), np.arange(8, 12)):  # two passes, as with stored examples
        states = encoder.states(collate([(task, task.split("train"), rows)], 0))[0]
        loss = loss + model.heads[task.name](model.dropout(states)).square().sum()
    loss = loss + torch.rand(())  # whose number says how many were drawn
    loss.backward()
    found = {n: p.grad for n, p in learner.trained_parameters().items() if p.grad is not None}
    return loss.item(), found, runs[0], encoder


@pytest.mark.parametrize(
    ("make", "family"),
    [
        *(
            (make, "bert")
            for make in (Adapter, Lora, PromptTuning, PrefixTuning, Pals, Bapna, Progressive)
        ),
        (Finetune, "bert"),
        *(
            (Adapter, name)
            for name in ("mpnet", "albert", "deberta-v3", "modernbert", "t5", "llama")
        ),
    ],
)
def test_gradients_are_the_same_with_dropout(make, family: str) -> None:
    loss, expected, runs, _ = gradients(make, recomputed=False, family=family)
    again, found, twice, encoder = gradients(make, recomputed=True, family=family)
    assert loss == again
    assert runs == 2 * encoder.num_layers
    assert twice > runs
    assert found.keys() == expected.keys() != set()
    for name, gradient in found.items():
        assert torch.equal(gradient, expected[name]), name
    assert any(gradient.abs().max() > 0 for gradient in found.values())


def test_a_copy_recomputes_and_serving_does_not() -> None:
    encoder = tiny_encoder()
    encoder.checkpoint_layers()
    names = {name for name, _ in tiny_encoder().named_parameters()}
    assert {name for name, _ in encoder.named_parameters()} == names
    task = made_task("a")
    batch = collate([(task, task.split("train"), np.arange(4))], 0)
    for each in (encoder, copy.deepcopy(encoder)):
        runs: list[int] = []
        each.layers()[0].register_forward_pre_hook(lambda *_, runs=runs: runs.append(1))
        each.train().states(batch)[0].sum().backward()
        assert len(runs) == 2
        each.eval().states(batch)[0].sum().backward()
        assert len(runs) == 3


def test_each_use_of_a_layer_is_recomputed_as_that_use() -> None:
    class Layer(torch.nn.Linear):
        seen: list[int]

        def forward(self, input: torch.Tensor) -> torch.Tensor:
            self.seen.append(uses.current)
            return super().forward(input) * (uses.current + 2)

    def result(*, recomputed: bool) -> tuple[torch.Tensor, list[int]]:
        torch.manual_seed(0)
        layer = Layer(3, 3)
        layer.seen = []
        layer.register_forward_pre_hook(uses.begin_use)
        if recomputed:
            recompute_layers([layer], [uses])
        uses.current = -1
        values = torch.ones(1, 3)
        for _ in range(3):
            values = layer(values).tanh()
        values.sum().backward()
        assert layer.weight.grad is not None
        return layer.weight.grad, layer.seen

    uses = Uses()
    expected, once = result(recomputed=False)
    found, seen = result(recomputed=True)
    assert torch.equal(found, expected)
    assert once == [0, 1, 2]
    assert seen == [0, 1, 2, 2, 1, 0]


def test_what_has_no_effect_is_refused_and_what_is_not_captured_says_why() -> None:
    encoder = tiny_encoder()
    encoder.checkpoint_layers()
    with pytest.raises(UserError, match=r"gradient_checkpointing=true has no effect with l"):
        Frozen().attach(TaskModel(encoder, 0), tasks=[made_task("a")], seed=0, pad_id=0)
    gpu = torch.device("cuda")
    said = str(pick_engine("auto", Adapter(), gpu, 8, counting=False, recomputing=True))
    assert "gradient_checkpointing sets back random numbers" in said
    assert "CUDA" in str(pick_engine("auto", Adapter(), CPU, 8, counting=False, recomputing=True))
