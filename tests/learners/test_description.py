"""What methods say about themselves, against what they do and what docs and docstrings say."""

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.evidence.methods import METHODS
from stream.cli.learner_page import examples
from stream.config.backbone import BackboneConfig
from stream.config.data import FilesData, GeneratedData, HubData, Limits
from stream.config.description import described_settings, meanings
from stream.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    ProbeConfig,
    RunConfig,
    TrainingConfig,
)
from stream.config.setting import Range, Settings, rules
from stream.config.source import DialectSpec, HubSource
from stream.config.task import TaskSpec
from stream.learners import LEARNERS
from stream.learners.description import described_learners
from stream.report.tracking import TRACKERS
from tests.builders import Stream, made_task

ROOT = Path(__file__).parent.parent.parent
KNOWN = described_learners()
PARTS = [
    *(TrainingConfig, EvaluationConfig, ProbeConfig, CheckpointConfig, RunConfig, Limits),
    *(BackboneConfig, TaskSpec, DialectSpec, HubSource),
    *(FilesData, HubData, GeneratedData),
    TRACKERS["wandb"],
]
NO_PAPER = {"finetune", "frozen", "tfidf"}


def test_every_learner_is_planned_in_the_comparison() -> None:
    presets = {path.stem for path in ROOT.glob("conf/learner/*.yaml")}
    planned = {method.learner for method in METHODS}
    assert planned - presets == set(KNOWN)


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_paper_is_the_one_of_the_module(name: str) -> None:
    """Its authors, year and number are in the file's own docstring, and not those of a parent."""
    learner = LEARNERS[name]
    assert "tags" in vars(learner)
    said = inspect.getdoc(inspect.getmodule(learner)) or ""
    numbers = re.findall(r"\d{4}\.\d{5}", learner.tags.paper)
    assert bool(numbers) == (name not in NO_PAPER)
    for part in [*numbers, learner.tags.paper.split()[0] if numbers else ""]:
        assert part in said


@pytest.mark.parametrize("settings", [*LEARNERS.values(), *PARTS], ids=lambda kind: kind.__name__)
def test_every_setting_has_a_meaning(settings: type) -> None:
    """It is more than the setting's name in other words."""
    for name, meaning in ((f.name, meanings(settings).get(f.name, "")) for f in fields(settings)):
        new = set(re.findall(r"\w+", meaning.lower())) - {*name.split("_"), "the", "a", "of"}
        assert new, name


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_what_a_docstring_names_are_settings(name: str) -> None:
    assert set(meanings(LEARNERS[name])) == {field.name for field in fields(LEARNERS[name])}


def test_a_class_says_what_differs_from_its_parent() -> None:
    class Parent(Settings):
        """A parent.

        Attributes:
            one: the first
                of ``two``.
            two: the second: `last`.

        Raises:
            three: no setting.
        """

    class Child(Parent):
        """A child.

        Attributes:
            two: another second.
        """

    assert meanings(Parent) == {"one": "the first of two.", "two": "the second: last."}
    assert meanings(Child) == {"one": "the first of two.", "two": "another second."}


def test_the_words_of_a_range_hold() -> None:
    """The numbers in them are valid or not, as they say."""
    seen = set()
    for learner in LEARNERS.values():
        for setting in described_settings(learner):
            valid = rules(learner)[setting.name].valid
            for word, number in re.findall(
                r"(above|at least|at most|below) ([\d.,-]+\d|\d)", setting.valid
            ):
                assert isinstance(valid, Range)
                bound = float(number.replace(",", ""))
                assert (valid.problem(bound) == "") == (word in ("at least", "at most"))
                beyond = bound - 1 if word in ("above", "at least") else bound + 1
                assert valid.problem(beyond) != ""
                seen.add(word)
    assert seen >= {"above", "at least", "at most"}


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_description_is_json_and_its_example_is_valid(name: str) -> None:
    described = KNOWN[name]
    assert json.loads(json.dumps(described.to_json()))["name"] == name
    for command in examples(name, described.settings)[1:]:
        setting, _, value = command.rpartition(" learner.")[2].partition("=")
        LEARNERS[name](**{setting: json.loads(value)})


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_who_stores_examples_has_a_buffer(name: str) -> None:
    learner = LEARNERS[name]()
    Stream(learner, [made_task("one")])
    assert ("examples" in learner.tags.stores) == (learner.buffer is not None)


@pytest.mark.parametrize("name", ["derpp", "ewc", "finetune", "lwf", "si", "majority", "topk"])
def test_what_is_stored_is_what_the_tags_say(name: str) -> None:
    learner = LEARNERS[name](head_lr=None) if name == "majority" else LEARNERS[name]()
    stream = Stream(learner, [made_task("one"), made_task("two")])
    stream.learn(0)
    stores = learner.tags.stores
    assert ("importances" in stores or "logits" in stores) == bool(learner.shared_tensors)
    assert ("frequencies" in stores) == bool(learner.task_tensors)
    owned = [n for n in learner.trained_parameters() if not n.startswith("heads.")]
    assert ("layers" in stores) == (bool(owned) and learner.tags.parameter_isolation)


def test_perfect_memory_is_that_of_the_evidence() -> None:
    """docs/methods.md: 15 methods with parameter isolation forgot nothing; the others may."""
    table = (ROOT / "docs" / "methods.md").read_text().partition("| method | settings |")[2]
    forgetting = dict(re.findall(r"^\| ([a-z_]+) \|(?:[^|]*\|){3} ([\d.]+) ±", table, re.MULTILINE))
    assert len(forgetting) > 25
    for name, described in KNOWN.items():
        if described.perfect_memory is not None and name in forgetting:
            assert (float(forgetting[name]) == 0) == described.perfect_memory, name
