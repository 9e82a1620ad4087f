"""The one command: its list, what it imports, and its one line for each kind of error."""

import argparse
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from stream.cli.boundary import error_boundary
from stream.cli.main import COMMANDS, main
from stream.errors import IsolationError, TrainingDivergedError, UserError
from stream.run.interrupt import Interrupted

ROOT = Path(__file__).parent.parent.parent


def imported(*command: str) -> set[str]:
    """The packages that one command imports."""
    code = (
        "import sys; from stream.cli.main import main\n"
        f"try: main({list(command)})\n"
        "except SystemExit: pass\n"
        "print('imported:', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_lists_every_command_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines if line and line[0] in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_added_by_its_module(name: str) -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    import_module(COMMANDS[name].module).add_commands(commands)
    assert name in commands.choices
    helps = [parser.format_help() for parser in commands.choices.values()]
    assert not [text for text in helps if "``" in text or "%%" in text]
    assert not [line for text in helps for line in text.splitlines() if len(line) > 100]


def test_commands_import_what_they_need() -> None:
    heavy = {"torch", "transformers", "hydra", "omegaconf", "numpy", "pandas", "matplotlib", "rich"}
    assert not imported("--help") & heavy
    assert not imported("no-such-command") & heavy
    assert not imported("compare", "no-such-run") & {"torch", "transformers", "hydra", "datasets"}


def test_a_wrong_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comapre", "runs"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: unknown command 'comapre'. Did you mean 'compare'?")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "runs"], "arguments are required: --task"),
        (["predict", "runs", "--task"], "argument --task: expected one argument"),
        (["compare"], "the following arguments are required: RUN"),
        (["verify", "runs", "--jsn"], "unrecognized arguments: --jsn (see task-stream"),
        (["--nope"], "COMMAND"),
        (["show"], "required"),
        (
            ["export", "run", "--task", "a", "--task", "b", "--out", "x"],
            "--task is given twice (a and b); give it once",
        ),
        (["compare", "run", ""], "argument RUN: its value is empty"),
        (["figures", "run", "--out", ""], "argument --out: its value is empty"),
    ],
)
def test_what_the_parser_refuses_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("two\nlines"), 2, "error: two lines; go on\n"),
        (TrainingDivergedError("loss nan"), 1, "error: loss nan; go on\n"),
        (IsolationError("changed"), 1, "error: changed; go on\n"),
        (PermissionError("no"), 1, "error: no; go on\n"),
        (Interrupted(signal.SIGTERM), 143, "error: stopped by SIGTERM; go on\n"),
        (KeyboardInterrupt(), 130, "error: interrupted; go on\n"),
    ],
)
def test_an_expected_error_is_one_line_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with error_boundary(lambda error: "; go on") as status:
        raise error
    assert status.code == code
    assert capsys.readouterr().err == line


def test_tables_of_runs_need_no_more_than_every_system_has() -> None:
    """As on Windows: no module fcntl, and none of some signals."""
    code = (
        "import signal, sys, enum\n"
        "sys.modules['fcntl'] = None\n"
        "names = {n: v for n, v in signal.Signals.__members__.items() if 'USR' not in n}\n"
        "del names['SIGHUP'], signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2\n"
        "signal.Signals = enum.IntEnum('Signals', names)\n"
        "from stream.cli.main import main\n"
        "sys.exit(main(['compare', 'nothing']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: nothing: no such folder\n")


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), error_boundary():
        raise ZeroDivisionError
