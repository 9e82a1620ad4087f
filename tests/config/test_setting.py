"""Every field of every part of the settings: valid values are kept, all others are one line."""

import math
from dataclasses import MISSING, Field, fields, make_dataclass
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from stream.config.backbone import BackboneConfig
from stream.config.complaints import complaints
from stream.config.data import DATA, Limits
from stream.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    ProbeConfig,
    RunConfig,
    TrainingConfig,
)
from stream.config.setting import LAST_SEED, Range, Rule, Settings, at_least, rules, setting
from stream.config.source import DialectSpec, GeneratedText
from stream.errors import UserError
from stream.learners import LEARNERS
from stream.run.settings import compose_settings

PARTS: dict[str, type[Settings]] = {
    **LEARNERS,
    **DATA,
    "backbone": BackboneConfig,
    "checkpoint": CheckpointConfig,
    "dialect": DialectSpec,
    "evaluation": EvaluationConfig,
    "generated text": GeneratedText,
    "limits": Limits,
    "probe": ProbeConfig,
    "training": TrainingConfig,
}
GIVEN = {"backbone": {"name": "made", "origin": "folder", "location": "here"}}
"""What a part does not have by itself."""
FIELDS = [(name, f) for name, kind in PARTS.items() for f in fields(kind)]
TOGETHER = ("size", "attention_heads")  # of `pals`: one is a multiple of the other
NEVER = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e-300, 10**30, -(10**30))


def made(name: str, field: "Field[Any]", value: Any) -> Any:
    """Make a part with one value, and with what this one needs; return the value that it has."""
    rule = rules(PARTS[name])[field.name]
    needed = {key: 1 if wanted is None else wanted for key, wanted in (rule.needs or {}).items()}
    part = PARTS[name](**{**GIVEN.get(name, {}), **needed, field.name: value})
    return getattr(part, field.name)


def refused(name: str, field: "Field[Any]", value: Any) -> None:
    """Assert that a value is refused in one line that has the name of the setting."""
    problem = ""
    try:
        made(name, field, value)
    except UserError as error:
        problem = str(error)
    assert field.name in problem, f"{name}.{field.name}={value!r}: {problem!r}"
    assert "\n" not in problem


def kinds(field: "Field[Any]") -> set[Any]:
    """The types that a field's values may have."""
    return set(get_args(field.type)) or {field.type}


@pytest.mark.parametrize("name", PARTS)
def test_what_no_number_may_be_and_other_types_are_refused(name: str) -> None:
    for field in fields(PARTS[name]):
        for value in NEVER:
            refused(name, field, value)
        for kind, value in ((bool, True), (int, 3), (str, "odd"), (float, 0.5), (list, ["odd"])):
            wider = {int} & {kind} and float in kinds(field)  # a whole number is a number
            named = str(field.type).startswith(kind.__name__)
            if not (kinds(field) & {kind, Any} or wider or named):
                refused(name, field, value)


def test_a_number_is_no_truth_value_wherever_settings_are_read() -> None:
    found = [(k, f.name) for k in (*PARTS.values(), RunConfig) for f in fields(k) if f.type is bool]
    assert {"gradient_checkpointing", "hold_steps", "offline", "figures"} <= {n for _, n in found}
    for kind, name in found:
        for value in (2, 1, 0, "1"):
            with pytest.raises(UserError, match=f"{name}: must be true or false"), complaints():
                OmegaConf.structured(kind)[name] = value
        node = OmegaConf.structured(kind)
        with complaints():
            node[name] = "no"
        assert node[name] is False
        node[name] = 2  # what others read with OmegaConf is theirs
        assert node[name] is True


@pytest.mark.parametrize("name", PARTS)
def test_a_range_ends_where_it_says(name: str) -> None:
    for field in fields(PARTS[name]):
        rule = rules(PARTS[name])[field.name]
        if isinstance(rule.valid, Range) and not rule.idle:
            check_ends(name, field, rule.valid)


def check_ends(name: str, field: "Field[Any]", valid: Range) -> None:
    step = 1 if int in kinds(field) else 1e-9
    refused(name, field, valid.low if valid.above else valid.low - step)
    refused(name, field, valid.high if valid.below else max(valid.high + step, valid.high * 1.01))
    if not (name == "pals" and field.name in TOGETHER):
        whole = int if int in kinds(field) else float
        low, high = (
            (valid.low, valid.high) if whole is int else (valid.low + 1e-9, valid.high - 1e-9)
        )
        assert made(name, field, whole(low)) == whole(low)
        assert made(name, field, whole(high)) == whole(high)


NUMBERS = [
    (n, f) for n, f in FIELDS if kinds(f) & {int, float} and (n != "pals" or f.name not in TOGETHER)
]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(NUMBERS),
    st.one_of(st.integers(), st.floats(), st.integers(0, 9), st.floats(0, 1), st.text(max_size=3)),
)
def test_a_value_is_kept_or_refused_in_one_line(chosen: tuple, value: Any) -> None:
    name, field = chosen
    kept, problem = value, ""
    try:
        kept = made(name, field, value)
    except UserError as error:
        problem = str(error)
    assert "\n" not in problem
    assert not problem or field.name in problem
    assert kept == value or problem
    assert problem or not isinstance(value, float) or math.isfinite(value)


def test_every_number_of_every_learner_has_a_range() -> None:
    """Another default, which a subclass gives, keeps it."""
    for name, kind in LEARNERS.items():
        for field in fields(kind):
            bounded = isinstance(rules(kind)[field.name].valid, Range)
            assert bounded == bool(kinds(field) & {int, float}), f"{name}.{field.name}"


def test_defaults_are_valid_and_choices_are_checked() -> None:
    for name, field in FIELDS:
        rule: Rule = rules(PARTS[name])[field.name]
        if field.default is not MISSING and field.name not in GIVEN.get(name, {}):
            assert made(name, field, field.default) == field.default
        if isinstance(rule.valid, tuple):
            refused(name, field, "no such name")


def test_a_default_that_a_subclass_changes_keeps_needs_and_idleness() -> None:
    base = make_dataclass(
        "Base",
        [
            ("on", bool, False),
            ("rate", float, setting(0.5, Range(0, 1), needs={"on": True})),
            ("old", int, setting(3, at_least(1), idle="with {0.GROUP}")),
        ],
        bases=(Settings,),
        namespace={"GROUP": "made"},
    )
    kind = make_dataclass("Kind", [("rate", float, 0.25)], bases=(base,))
    assert kind(on=True, rate=1).rate == 1
    assert kind().rate == 0.25
    with pytest.raises(UserError, match=r"made.rate=0.5 has no effect with made.on=false; use"):
        kind(rate=0.5)
    with pytest.raises(UserError, match=r"made.old=4 has no effect with made"):
        kind(old=4)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learner.lr=inf", "learner.lr must be finite"),
        ("training.clip_norm=1e300", "training.clip_norm must be"),
        (f"training.epochs={10**30}", "training.epochs must be"),
        (f"seed={LAST_SEED + 1}", "seed must be"),
        ("training.gradient_checkpointing=2", "checkpointing: must be true or false, got 2"),
    ],
)
def test_the_command_line_says_it_too(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        compose_settings([override, "task=[rte]"])
    assert "\n" not in str(caught.value)
