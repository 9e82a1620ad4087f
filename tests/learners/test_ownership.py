"""Whose a parameter is: a task's by its module, a task's by copies, or all tasks'."""

import pytest
from torch import nn

from stream.learners.ownership import Ownership
from stream.learners.tags import Tags
from stream.models.modules.by_task import ByTask
from tests.builders import tiny_encoder

OF_TASKS = {f"mine.{task}.{kind}": task for task in "ab" for kind in ("weight", "bias")}
LAYERNORMS = {f"body.embeddings.LayerNorm.{kind}" for kind in ("weight", "bias")}


@pytest.mark.parametrize(
    ("tags", "copied", "shared"),
    [
        (Tags(), set(), LAYERNORMS),
        (Tags(parameter_isolation=True), LAYERNORMS, set()),
        (Tags(is_multitask=True), set(), LAYERNORMS | OF_TASKS.keys()),
    ],
)
def test_what_is_trained_is_of_one_of_three_kinds(tags: Tags, copied: set, shared: set) -> None:
    encoder = tiny_encoder()
    encoder.add_module("mine", ByTask({task: nn.Linear(2, 2) for task in "ab"}))
    for name, parameter in encoder.named_parameters():
        parameter.requires_grad_(name in LAYERNORMS | OF_TASKS.keys())
    found = Ownership.of(encoder, tags)
    assert found == Ownership(OF_TASKS, frozenset(copied), frozenset(shared))
    assert found.modules_of("b") == ["mine.b.weight", "mine.b.bias"]
    assert found.modules_of("a", "b") == list(OF_TASKS)
    assert found.modules_of() == []
