"""What can be chosen, as a person and a program see it: task-stream learners, tasks, show, ..."""

import argparse
import json
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from stream.cli import listing
from stream.cli.main import main
from stream.cli.show import SHOWN
from stream.cli.table import Column, Group, Screen
from stream.cli.tasks import add_commands
from stream.config import choices
from stream.config.compose import searched_too
from stream.learners import LEARNERS
from tests.composed import compose_run

ROOT = Path(__file__).parent.parent.parent
LISTINGS = ("learners", "tasks", "streams", "protocols", "backbones", "experiments", "metrics")
ESCAPE = "\x1b"
MINE = """\
mine:
  title: Mine
  kind: single
  labels: [bad, good]
  metric: accuracy
  source: "a file of mine"
"""


def stems(group: str) -> set[str]:
    """The names of a group's files."""
    return {path.stem for path in ROOT.glob(f"conf/{group}/*.yaml")}


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Call a command on a screen of some width (0: no screen); return what it prints."""

    def call(*command: str, width: int = 0) -> str:
        monkeypatch.delenv("COLUMNS", raising=False)
        if width:
            monkeypatch.setenv("COLUMNS", str(width))
        assert main(command) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("name", LISTINGS)
def test_lines_fit_the_screen_and_no_word_is_cut(said, name: str) -> None:
    wide = said(name)
    for width in (80, 120):
        lines = said(name, width=width).splitlines()
        assert max(map(len, lines)) <= width
        table = [line for line in lines if not line.startswith("Not shown")]
        assert {w for line in table for w in line.split()} <= {"...", *wide.split()}
        assert not any(ESCAPE in line for line in lines)


def test_every_learner_and_preset_has_a_line(said) -> None:
    first = [line.split()[0] for line in said("learners", width=80).splitlines() if line]
    for name in stems("learner") | set(LEARNERS):
        assert first.count(name) == 1


def test_json_has_every_name(said) -> None:
    learners = json.loads(said("learners", "--json"))
    memory = {learner["name"]: learner["perfect_memory"] for learner in learners["learners"]}
    assert set(memory) == set(LEARNERS)
    assert (memory["adapter"], memory["finetune"], memory["joint"]) == (True, False, None)
    assert {preset["name"] for preset in learners["presets"]} == stems("learner")
    named = {
        stream["name"]: stream["tasks"]
        for stream in json.loads(said("streams", "--json"))["streams"]
    }
    assert set(named) == stems("stream")
    assert named["glue9"] == OmegaConf.load(ROOT / "conf/stream/glue9.yaml").tasks
    assert named["clinc150_15x10"] == [f"clinc150_{part}" for part in range(1, 16)]
    protocols = {
        p["name"]: p["settings"] for p in json.loads(said("protocols", "--json"))["protocols"]
    }
    assert set(protocols) == stems("protocol")
    assert protocols["online"] == {"training.epochs": 1, "training.min_steps": 0}
    backbones = json.loads(said("backbones", "--json"))["backbones"]
    assert {backbone["name"] for backbone in backbones} == stems("backbone")
    experiments = {e["name"]: e for e in json.loads(said("experiments", "--json"))["experiments"]}
    assert set(experiments) == stems("experiment")
    assert experiments["fig4_topk"]["settings"]["learner"] == "topk"
    assert experiments["fig4_topk"]["varied"]["seed"] == ["1", "2", "3"]
    for name, experiment in experiments.items():
        assert experiment["commands"]
        assert f"experiment={name}" in experiment["commands"][0]
        composed = compose_run(ROOT / "conf", [f"experiment={name}"])[0]
        assert composed.experiment == name
        if "learner" in experiment["settings"]:
            assert composed.learner.name == experiment["settings"]["learner"]
    assert "bwt" in {metric["name"] for metric in json.loads(said("metrics", "--json"))["of_runs"]}


def test_tasks_says_what_is_predicted(said) -> None:
    lines = {line.split()[0]: line for line in said("tasks").splitlines() if line}
    assert lines["crowdflower_emotion"].split()[1:5] == ["single", "13", "classes", "accuracy"]
    assert lines["stsb"].split()[1:5] == ["pair", "score", "0-5", "spearman"]
    assert lines["squad"].split()[1:4] == ["span", "span", "answer_f1"]


def test_tasks_list_is_no_dead_end() -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    add_commands(commands)
    parse = commands.choices["tasks"].parse_args
    assert parse(["list", "--json"]).execute is parse([]).execute is listing.tasks
    assert parse(["list", "--json"]).json
    assert parse(["--json", "list"]).json
    assert not parse(["list"]).json
    folder = parse(["--config-dir", "one", "show", "sst2"]).config_dir
    assert folder == parse(["show", "sst2", "--config-dir", "one"]).config_dir == Path("one")
    assert main(["tasks", "--json", "show", "sst2"]) == 2


def test_files_of_ones_own_are_listed_with_what_is_wrong_with_them(said, tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "learner").mkdir()
    for name in ("mine", "sst2"):
        (tmp_path / f"task/{name}.yaml").write_text(MINE.replace("mine:", f"{name}:"))
    (tmp_path / "task/heir.yaml").write_text("heir:\n  kind: single\n  labels: 3\n")
    (tmp_path / "task/odd.yaml").write_text("mine: [")
    (tmp_path / "learner/small.yaml").write_text(
        "# A small one.\ndefaults: [adapter, _self_]\nsize: 4\n"
    )
    folder = ("--config-dir", str(tmp_path))
    tasks = json.loads(said("tasks", "--json", *folder))
    assert {task["name"] for task in tasks["tasks"]} == {*stems("task"), "mine"}
    assert set(tasks["broken"]) == {"heir", "odd", str(tmp_path / "task/sst2.yaml")}
    assert "Cannot be used" in said("tasks", *folder)
    assert "small" in said("learners", *folder)
    assert "size=4" in said("show", "learner", "small", *folder)
    assert "a file of mine" in said("show", "task", "mine", *folder)


@pytest.mark.parametrize(
    "what", ["stream", "protocol", "backbone", "learner", "task", "experiment"]
)
def test_examples_name_the_folder_that_they_need(said, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "of mine"
    contents = {
        "stream": "name: mine\ntasks: [rte, cola]\n",
        "protocol": "# @package _global_\ntraining: {epochs: 2}\n",
        "backbone": "origin: hub\nlocation: a/b\n",
        "learner": "defaults: [adapter, _self_]\nsize: 8\n",
        "task": MINE,
        "experiment": "# @package _global_\nexperiment: mine\ntraining: {epochs: 2}\n",
    }
    (folder / what).mkdir(parents=True)
    (folder / what / "mine.yaml").write_text(contents[what])
    text = said("show", what, "mine", "--config-dir", str(folder))
    lines = text.partition("For example\n")[2].partition("\n\n")[0].splitlines()
    assert lines
    assert all(line.endswith(f" --config-dir '{folder}'") for line in lines)


def test_a_file_that_builds_on_another_is_shown_as_a_run_has_it(said, tmp_path: Path) -> None:
    contents = {
        "backbone/heir": "defaults: [minilm, _self_]\npooling: mean\nname: heir\n",
        "learner/one": "defaults: [adapter_deep, _self_]\nsize: 8\n",
        "learner/heir": "defaults: [_self_, one]\nsize: 4\nlr: 0.5\n",
        "protocol/heir": "# @package _global_\ndefaults: [rows200, _self_]\nlimits: {seed: 3}\n",
        "experiment/one": "# @package _global_\ndefaults: [smoke, override /backbone: heir]\n",
        "experiment/heir": "# @package _global_\ndefaults: [one, _self_]\nseed: 5\n",
        "bases/all": "{title: T, kind: single, labels: [a, b], metric: accuracy, source: s}\n",
        "task/heir": "defaults: [/bases@heir: all, _self_]\nheir: {version: 3}\n",
    }
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(text)
    folder = ("--config-dir", str(tmp_path))
    preset = json.loads(said("show", "learner", "heir", "--json", *folder))["preset"]
    protocol = choices.protocols(tmp_path).usable["heir"].content
    settings = choices.experiments(tmp_path).usable["heir"].content.settings
    backbone = choices.backbones(tmp_path).usable["heir"].content
    assert choices.tasks(tmp_path, only="heir").usable["heir"].content.version == 3

    chosen = [f"{kind}=heir" for kind in ("learner", "protocol", "experiment")]
    composed, _ = compose_run(ROOT / "conf", [*chosen, searched_too(tmp_path)])
    assert (preset["learner"], preset["settings"]) == ("adapter", {"depth": 2, "size": 8})
    assert composed.learner.lr == LEARNERS["adapter"]().lr  # the class comes after the heir
    assert settings.pop("task") == list(composed.task)
    assert {settings.pop(key) for key in ("backbone", "tracking")} == {"heir", "none"}
    assert len(settings) == 5
    for values, within in (
        (preset["settings"], "learner."),
        (backbone, "backbone."),
        (protocol, ""),
        (settings, ""),
    ):
        for key, value in values.items():
            assert attrgetter(f"{within}{key}")(composed) == value


@pytest.mark.parametrize("name", ["adapter", "ewc", "joint", "majority", "ewc_adapter"])
def test_show_has_every_setting_with_its_default(said, name: str) -> None:
    lines = said("show", "learner", name, width=80).splitlines()
    changed = {}
    if name in stems("learner"):
        changed = dict(OmegaConf.load(ROOT / f"conf/learner/{name}.yaml"))
        name = changed.pop("defaults")[0]
    first = [line.split()[0] for line in lines if line.startswith("  ")]
    for setting, value in (vars(LEARNERS[name]()) | changed).items():
        written = str(value).lower() if isinstance(value, bool) else str(value)
        assert f"{setting}={'null' if value is None else written}" in first
    assert max(len(line) for line in lines if "task-stream" not in line) <= 80


def test_show_shows_one_of_each_kind(said) -> None:
    for what, name in (
        ("task", "stsb"),
        ("stream", "glue9"),
        ("protocol", "rows20"),
        ("backbone", "tiny"),
        ("experiment", "orders"),
        ("metric", "bwt"),
    ):
        assert said("show", what, name).startswith(f"{name}: ")
        assert json.loads(said("show", what, name, "--json"))["name"] == name


def test_show_has_every_order_of_a_stream_and_its_other_numbers(said) -> None:
    shown = said("show", "stream", "long15")
    for number, other in ((4, 8), (5, 9), (6, 10)):
        assert f"order=published_{number}" in shown
        assert f"published_{number} is {other} in" in " ".join(shown.split())
    assert "same labels" in said("show", "stream", "cl5")


def test_what_an_experiment_varies_is_what_hydra_runs(said, tmp_path: Path) -> None:
    swept = {
        "learner": "adapter, ewc",
        "order_seed": "range(1,4)",
        "task": "[sst2,rte],[cola]",
        "seed": "7",
        "learner.lr": "interval(1e-4,1e-2)",
    }
    (tmp_path / "experiment").mkdir()
    params = json.dumps({"hydra": {"sweeper": {"params": swept}}})
    (tmp_path / "experiment/mine.yaml").write_text(params)
    shown = said("show", "experiment", "mine", "--json", "--config-dir", str(tmp_path))
    assert json.loads(shown)["varied"] == {
        "learner": ["adapter", "ewc"],
        "order_seed": ["1", "2", "3"],
        "task": ["[sst2,rte]", "[cola]"],
        "seed": ["7"],
        "learner.lr": ["interval(1e-4,1e-2)"],
    }


@pytest.mark.parametrize("what", SHOWN)
def test_an_unknown_name_is_one_line(capsys: pytest.CaptureFixture[str], what: str) -> None:
    near = {
        "learner": "lora",
        "task": "sst2",
        "stream": "glue9",
        "protocol": "rows200",
        "backbone": "tiny",
        "experiment": "orders",
        "metric": "bwt",
    }
    assert main(["show", what, f"{near[what]}x"]) == 2
    error = capsys.readouterr().err
    assert f"Did you mean {near[what]!r}?" in error
    assert error.count("\n") == 1


def test_what_to_show_is_asked_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "lerner", "adapter"]) == main(["show", "learner"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_has_bold_headings_unless_no_color(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, no_color: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    Screen().table([Column("one")], [Group("a heading", [["a cell"]])])
    assert (ESCAPE in capsys.readouterr().out) == (not no_color)


def test_columns_go_by_rank_and_words_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    columns = [Column("a"), Column("late", 3), Column("b", 1), Column("c", 2, is_elastic=True)]
    row = ["x" * 5, "y" * 30, "z" * 5, "some words that are far too many for this"]
    assert Screen().table(columns, [Group("", [row])]) == ["late"]
    assert capsys.readouterr().out.splitlines()[1] == "xxxxx  zzzzz  some words that are ..."
