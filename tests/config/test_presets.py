"""Presets: every one composes with every value that it sweeps, and names itself."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from stream.config.composition import Composition
from stream.config.names import GROUPS
from stream.config.typed import parse
from stream.learners import LEARNERS
from tests.composed import compose_run

CONF = Path(__file__).parent.parent.parent / "conf"
EXPERIMENTS = sorted(path.stem for path in CONF.glob("experiment/*.yaml"))
LEARNER_PRESETS = sorted(path.stem for path in CONF.glob("learner/*.yaml"))
TOGETHER = {"ranpac": {"kind"}}


def sweeps(name: str) -> list[list[str]]:
    """Combinations of what a preset sweeps in which every value of every setting occurs."""
    loaded = OmegaConf.load(CONF / "experiment" / f"{name}.yaml")
    params = OmegaConf.select(loaded, "hydra.sweeper.params") or {}
    values = {k: [v.strip() for v in str(text).split(",")] for k, text in params.items()}
    most = max(map(len, values.values()), default=0)
    return [[f"{k}={v[i % len(v)]}" for k, v in values.items()] for i in range(most)]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_composes_and_says_its_name(name: str) -> None:
    """As a sweep tries its jobs: what chooses a file is composed, other values are set."""
    chosen = [f"experiment={name}"]
    if "override /task" not in (CONF / "experiment" / f"{name}.yaml").read_text():
        chosen.append("task=[cola]")  # the tasks that are learned without an experiment
    composed: dict[tuple[str, ...], Composition] = {}
    config = Composition.of(CONF, chosen).run_config()
    assert config.experiment == name
    assert config.task
    for overrides in sweeps(name):
        files = tuple(text for text in overrides if text.partition("=")[0] in GROUPS)
        if files not in composed:
            composed[files] = Composition.of(CONF, [*chosen, *files])
        composed[files].with_values(parse([text for text in overrides if text not in files]))


@pytest.mark.parametrize("name", LEARNER_PRESETS)
def test_a_learner_preset_changes_one_setting(name: str) -> None:
    """And what was tuned together with it, or is one published method only together with it."""
    config, _ = compose_run(CONF, [f"learner={name}", "task=[cola]"])
    default = LEARNERS[config.learner.name]()
    changed = {k for k, v in vars(config.learner).items() if v != getattr(default, k)}
    assert len(changed - {"lr", "strength"} - TOGETHER.get(name, set())) == 1


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n != "smoke"])
def test_the_header_tells_command_and_expectation(name: str) -> None:
    text = (CONF / "experiment" / f"{name}.yaml").read_text()
    assert f"experiment={name} " in text
    assert "Expected" in text
