"""What makes two runs the same: their settings, with those that older records lack."""

from copy import deepcopy
from typing import Any

import pytest

from stream.config.run import ADDED
from stream.run.settings import as_values, compose_settings, deciding_digest, deciding_values


def without(values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The settings as a version wrote them that did not know some."""
    older = deepcopy(values)
    for name in names:
        part, _, key = name.partition(".")
        del older[part][key]
    return older


def digest(*overrides: str, lacks: tuple[str, ...] = ()) -> str:
    values = as_values(compose_settings(["task=[rte]", *overrides])[0])
    return deciding_digest(deciding_values(without(values, list(lacks)), "adapter"))


def test_a_record_that_lacks_a_setting_is_of_the_same_run() -> None:
    assert digest() == digest(lacks=tuple(ADDED))


@pytest.mark.parametrize(
    "given",
    [
        ("backbone.precision=bf16", "backbone.storage=bf16"),
        ("backbone.attention=eager",),
        ("training.gradient_checkpointing=true",),
    ],
)
def test_another_value_is_another_run(given: tuple[str, ...]) -> None:
    assert digest(*given) != digest(*given, lacks=(given[-1].partition("=")[0],))
