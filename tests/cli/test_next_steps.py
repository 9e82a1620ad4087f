"""What to try next: the commands are real, and call this program from where it was called."""

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.commands import add_commands
from stream.cli.command_line import CommandLine
from stream.cli.next_steps import next_steps, program
from stream.cli.overrides import check_command_line
from stream.config.data import FilesData
from stream.config.paths import conf_folder
from tests.composed import compose_run


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in this folder."""
    bin_ = tmp_path / "my env" / "bin"
    bin_.mkdir(parents=True)
    for name in ("python", "task-stream"):
        (bin_ / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(bin_ / "python"))
    monkeypatch.chdir(tmp_path)
    return bin_


def test_the_program_is_called_as_it_can_be(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == ["my env/bin/task-stream"]  # called by its path, or by make
    monkeypatch.setenv("PATH", str(installed))
    assert program() == ["task-stream"]  # the environment is active
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(installed / "task-stream", other)
    monkeypatch.setenv("PATH", f"{other}:{installed}")
    assert program() == ["my env/bin/task-stream"]  # another one has the name
    monkeypatch.chdir(other)
    assert program() == [str(installed / "task-stream")]
    monkeypatch.chdir(installed)
    assert program() == ["./task-stream"]
    (installed / "task-stream").unlink()
    assert program()[1:] == ["-m", "stream.cli.main"]


def test_what_is_printed_can_be_given_to_a_shell(installed: Path, tmp_path: Path) -> None:
    config, _ = compose_run(conf_folder(), ["experiment=smoke"])
    title, *lines = next_steps(config, tmp_path / "runs" / "a run")
    assert title.endswith(":")
    compare, inspect, report = (shlex.split(line.split("  ", 2)[2].strip()) for line in lines)
    called = ["my env/bin/task-stream"]
    start = compare.index(called[0])
    assert compare[start + 1] == "run"
    check_command_line(conf_folder(), CommandLine(compare[start + 2 :]))
    assert inspect[-4:] == [*called, "tasks", "inspect", "FILE.csv"]
    assert report[-5:] == [*called, "report", "runs/a run", "--out", "report.html"]
    assert callable(add_commands)
    own = replace(config, data=FilesData(root="."))
    assert next_steps(own, tmp_path) == []
