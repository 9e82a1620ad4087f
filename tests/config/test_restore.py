"""Recorded settings: what OmegaConf has nothing to look at becomes what OmegaConf makes of it."""

from dataclasses import asdict, fields
from typing import Any

import msgspec
import pytest
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from stream.config import compose
from stream.config.paths import conf_folder
from stream.config.plain import NotPlainError, part
from stream.config.run import RunConfig
from stream.errors import UserError
from stream.learners import LEARNERS
from stream.run.settings import as_values, recorded_config
from tests.composed import compose_run


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """The settings of a run, but those of its learner."""
    composed, _ = compose_run(conf_folder(), ["experiment=smoke", "tracking=none"])
    return as_values(composed) | {"learner": {}}


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_is_restored_as_by_omegaconf(learner: str) -> None:
    kind = LEARNERS[learner]
    values = msgspec.to_builtins(asdict(kind()))
    plain, again = (part(kind, values).new() for _ in range(2))
    assert again is not plain  # it has state
    slow: Any = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), values))
    assert asdict(plain) == asdict(slow)


def test_a_run_is_restored_as_by_omegaconf(
    recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = recorded_config(recorded, "adapter", "generated")

    def never(*arguments: object) -> RunConfig:
        raise NotPlainError(str(arguments))

    monkeypatch.setattr(compose, "_plainly", never)
    slow = recorded_config(recorded, "adapter", "generated")
    assert type(slow.learner) is type(plain.learner)
    for field in fields(RunConfig):
        if field.name != "learner":
            assert getattr(slow, field.name) == getattr(plain, field.name), field.name


def test_what_is_not_plain_is_left_to_omegaconf(recorded: dict[str, Any]) -> None:
    values = recorded | {"seed": "3", "cache": "${x}"}
    del values["data"]
    found = recorded_config(values, "adapter", "generated")
    assert (found.seed, found.cache, found.data.train) == (3, "${x}", 256)


def test_a_setting_that_is_not_known_is_named_where_nothing_was_composed(
    recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConfigStore.instance(), "repo", {})
    with pytest.raises(UserError, match=r"unknown setting 'qqq'\. Valid: learner, data"):
        recorded_config(recorded | {"qqq": 1}, "adapter", "generated")
