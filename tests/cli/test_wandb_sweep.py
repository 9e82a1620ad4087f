"""The example of a W&B sweep: what W&B's agent makes of it is a command line that can run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.config.paths import conf_folder
from stream.config.run import RunConfig
from stream.errors import UserError
from stream.report.wandb_view import points
from stream.run.settings import compose_settings
from tests.report.test_tracking import RECORD

ROOT = Path(__file__).parent.parent.parent
SWEEP = yaml.safe_load((ROOT / "docs/examples/wandb-sweep.yaml").read_text())
AGENT = {"WANDB_SWEEP_ID": "abc", "WANDB_RUN_ID": "r1"}


def arguments(values: dict[str, Any], command: list[str] | None = None) -> list[str]:
    """What stands behind the program in the agent's command for one run; by default W&B's own."""
    from wandb.sdk.launch.sweeps import utils  # takes seconds, which other processes save

    made = utils.create_sweep_command_args({"args": {n: {"value": v} for n, v in values.items()}})
    made |= {"env": ["/usr/bin/env"], "interpreter": ["python"], "program": [SWEEP["program"]]}
    filled = []
    for part in utils.create_sweep_command(command):
        macro = re.fullmatch(r"\$\{(\w+)\}", part)
        filled += made[macro[1]] if macro else [part]
    assert filled[:3] == ["/usr/bin/env", "python", "run_stream.py"]
    return filled[3:]


def composed(given: list[str], monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """The run of a command line that the agent starts, after our own check of it."""
    for name, value in AGENT.items():
        monkeypatch.setenv(name, value)
    line = CommandLine(given)
    check_command_line(conf_folder(), line)
    return compose_settings(line.settings())[0]


def ends(parameter: dict[str, Any]) -> list[Any]:
    """The first and the last value of a parameter."""
    values = parameter.get("values") or [parameter["min"], parameter["max"]]
    return [values[0], values[-1]]


@pytest.mark.parametrize("end", [0, 1])
def test_the_agents_command_can_run(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {name: ends(parameter)[end] for name, parameter in SWEEP["parameters"].items()}
    config = composed(arguments(values, list(SWEEP["command"])), monkeypatch)
    assert config.learner.lr == values["learner.lr"]
    assert config.limits.train == values["limits.train"]
    assert config.evaluation.split == "validation"


def test_the_default_command_can_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With dashes, and with a list and a null as Python writes them."""
    values = {"learner.lr": 0.001, "task": ["cola", "sst2"], "cache": None, "learner": "ewc"}
    config = composed(arguments(values), monkeypatch)
    assert (config.learner.lr, list(config.task)) == (0.001, ["cola", "sst2"])
    assert (config.cache, config.learner.name) == (None, "ewc")


def test_an_agents_run_cannot_be_several(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="WANDB_RUN_ID names one run"):
        composed(["-m", "task=[cola]", "seed=1,2"], monkeypatch)


def test_the_metric_is_logged() -> None:
    assert SWEEP["metric"]["name"] in [*points(RECORD, 0)][-1]
    assert SWEEP["metric"]["goal"] == "maximize"
