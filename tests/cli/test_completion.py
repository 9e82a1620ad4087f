"""Shell completion, in a real bash and in parts; versions."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hydra._internal.core_plugins.bash_completion import BashCompletion

from stream.cli.completion import TYPED, completing
from stream.cli.main import COMMANDS, main
from stream.cli.run import main as run
from stream.config.choices import names
from stream.learners import LEARNERS
from stream.version import installed_version

ROOT = Path(__file__).parent.parent.parent
FIRST = names("task")[0]
# What bash does when TAB is pressed behind "$1".
PRESS_TAB = """
COMP_LINE=$1; COMP_POINT=${#1}; words=($1); COMP_CWORD=$((${#words[@]} - 1))
hydra_bash_completion
echo "${COMPREPLY[@]}"
"""


def complete(
    typed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What is offered behind what was typed, as bash gets it."""
    monkeypatch.setenv(TYPED, typed)
    assert main(["-sc", "query=bash"]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no bash")
def test_bash_completes_a_learner(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Through a command ``task-stream``, and the functions that Hydra gives the shell."""
    program = tmp_path / "task-stream"
    program.write_text(f'#!/bin/bash\nexec {sys.executable} -m stream.cli.main "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    BashCompletion(config_loader=None).install()  # type: ignore[arg-type]
    script = capsys.readouterr().out + PRESS_TAB
    typed = "task-stream run learner=ew"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-c", script, "bash", typed],
        cwd=ROOT,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["learner=ewc", "learner=ewc_adapter"]
    assert done.stderr == ""


def test_commands_and_names_are_offered(capsys, monkeypatch) -> None:
    assert complete("task-stream lea", capsys, monkeypatch) == list(COMMANDS)
    assert set(LEARNERS) < set(complete("task-stream show learner ", capsys, monkeypatch))
    assert "sst2" in complete("task-stream tasks show s", capsys, monkeypatch)
    assert "glue9" in complete("task-stream show stream gl", capsys, monkeypatch)
    assert "online" in complete("task-stream show protocol o", capsys, monkeypatch)
    assert complete("task-stream compare ru", capsys, monkeypatch) == []  # files


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("task-stream run lear", f"task-stream task=[{FIRST}] lear"),
        ("task-stream run ", f"task-stream task=[{FIRST}] "),
        ("python run_stream.py seed=1 lear", f"python run_stream.py task=[{FIRST}] seed=1 lear"),
        ("task-stream run task=[rte] le", "task-stream task=[rte] le"),
        ("task-stream run experiment=smoke ", "task-stream experiment=smoke "),
    ],
)
def test_hydra_reads_settings_alone_and_few_tasks(monkeypatch, typed: str, read: str) -> None:
    monkeypatch.setenv(TYPED, typed)
    with completing(is_asked=True):
        assert os.environ[TYPED] == read
    assert os.environ[TYPED] == typed


def test_a_query_by_hand_is_one_line(capsys, monkeypatch) -> None:
    monkeypatch.delenv(TYPED, raising=False)
    with pytest.raises(SystemExit) as left:
        run(["--shell-completion", "query=bash"])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_versions_of_program_and_hydra(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == (
        f"task-stream {installed_version()} (Hydra {version('hydra-core')})\n"
    )
    assert main(["version"]) == 0
    said = capsys.readouterr().out
    assert f"torch {version('torch')}" in said
    assert str(ROOT / "stream") in said
