"""What a command line imports before it has answered, in one process that does one after another.

Times are measured by ``python -m benchmarks.speed.startup``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream.cli import run
from stream.cli.help import help_text
from stream.config.loader import choices_of
from stream.config.names import GROUPS
from stream.config.paths import conf_folder
from stream.learners import LEARNERS
from stream.run.settings import compose_settings, register_groups

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("torch", "transformers", "tokenizers", "datasets", "wandb", "scipy", "sklearn", "pandas")
HEAVY += ("matplotlib", "plotly", "huggingface_hub", "safetensors", "joblib", "submitit")
ANSWERED = (
    ["run", "--help"],
    ["run", "learner=adaptr"],
    ["run", "learner.sise=8", "task=[rte]"],
    ["run", "learner.size=-3", "task=[rte]"],
    ["run", "task=[rtee]"],
    ["run", "training.epochs=8", "learner=majority", "task=[rte]"],
    ["run", "--no-such-flag"],
    ["run", "--cfg", "job", "task=[rte]"],
    ["run", "-m", "seed=1,2", "learner=lora,none_such", "task=[rte]"],
    ["tasks", "--help"],
    ["tasks", "show", "rtee"],
    ["tasks", "no_such"],
    ["compare", "--help"],
    ["report", "--help"],
    ["no-such-command"],
)
PROGRAM = f"""
import io, sys
from contextlib import redirect_stderr, redirect_stdout
from stream.cli.main import main

def check(what):
    found = sorted({{name.partition(".")[0] for name in sys.modules}} & {set(HEAVY)})
    if found:
        sys.exit(f"{{what}} imported {{found}}")

for command in {ANSWERED}:
    shown = io.StringIO()
    with redirect_stderr(shown), redirect_stdout(shown):
        try:
            main(command)
        except SystemExit:
            pass
    if "Traceback" in shown.getvalue() or not shown.getvalue():
        sys.exit(f"{{command}} showed {{shown.getvalue()!r}}")
    check(command)

class Begun(Exception):
    pass

import stream.cli.run as run
def begin(folder, config, resume):
    check("a run that begins")
    raise Begun
run._run = begin
composed = []
from hydra._internal.config_loader_impl import ConfigLoaderImpl
compose = ConfigLoaderImpl._load_configuration_impl
def composing(self, **named):
    composed.append(named["run_mode"].name)
    return compose(self, **named)
ConfigLoaderImpl._load_configuration_impl = composing
try:
    run.main(["experiment=smoke"])
except Begun:
    print("begun", *composed)
check("the end")
"""


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    LEARNERS.settings  # noqa: B018 - the cache is there, as after the first start
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith(
        "adapter on a custom stream: 3 tasks, GENERATED data, tiny, seed 0 (runs/"
    )
    assert last == "begun RUN"  # composed to check it; Hydra need not do so again


def test_help_names_every_choice_that_there_is() -> None:
    register_groups()
    text = help_text(conf_folder(), "config", [])
    assert text is not None
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    for group in GROUPS:
        assert lines[group] == ", ".join(choices_of(conf_folder(), group, []))
    assert "hydra/launcher" not in lines
    assert "$" not in text


def test_help_knows_an_added_folder(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task/mine.yaml").write_text("mine: {title: Mine}\n")
    text = help_text(conf_folder(), "config", [f"hydra.searchpath=['file://{tmp_path}']"])
    assert text is not None
    assert ", mine, mnli_matched" in text


def test_help_of_another_kind_is_left_to_hydra(tmp_path: Path) -> None:
    for name, text in {
        "no": "seed: 1",
        "other": 'hydra: {help: {template: "all: $CONFIG"}}',
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
        assert help_text(tmp_path, name, []) is None
    assert help_text(tmp_path, "not_there", []) is None


@pytest.mark.parametrize(
    ("resume", "begin"), [(False, "lora (rank=2) on a custom"), (True, "going on")]
)
def test_the_first_line_says_what_runs_and_where(
    resume: bool, begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["task=[rte]", "learner=lora", "learner.rank=2", "seed=3", "data=files", "data.root=x"]
    config, _ = compose_settings(given)
    run._say_first(tmp_path, config, resume, given)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(begin)
    told = "lora (rank=2) on a custom stream: 1 task, data from files, minilm, seed 3"
    assert line.endswith(f"{told} ({tmp_path})")
