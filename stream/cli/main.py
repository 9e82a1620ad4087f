"""``task-stream``: one command, and a sub-command for each thing to do.

The module of a sub-command is imported when it is called; help needs none of them.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from stream.cli.boundary import error_boundary
from stream.cli.leaving import leave_after
from stream.cli.once import Once
from stream.cli.terminal import outlive_readers
from stream.errors import UserError, choose
from stream.run.preloaded import begin_early
from stream.version import installed_version

PROG = "task-stream"


class Command(NamedTuple):
    """The module whose ``add_commands`` gives a sub-command its parser, and its line of help."""

    module: str
    help: str


COMMANDS = {
    "run": Command("stream.cli.run", "learn a stream of tasks; with -m, many runs (Hydra)"),
    "tune": Command("stream.cli.tune", "search settings of learners on validation rows"),
    "learners": Command("stream.cli.listing", "every method, a line each; --json for programs"),
    "tasks": Command("stream.cli.tasks", "every task; show one, prepare a stream, inspect a file"),
    "streams": Command("stream.cli.listing", "every stream of tasks"),
    "protocols": Command(
        "stream.cli.preset_listing", "every preset of rows and epochs, as published"
    ),
    "backbones": Command("stream.cli.preset_listing", "every pretrained encoder"),
    "experiments": Command("stream.cli.preset_listing", "every prepared run and sweep"),
    "metrics": Command("stream.cli.listing", "every metric, of a task and of a run"),
    "show": Command("stream.cli.show", "one of these, with everything: show learner adapter"),
    "predict": Command("stream.cli.predict", "answer texts with what a run has learned"),
    "export": Command("stream.cli.export", "write one learned task as files that stand alone"),
    "compare": Command("analysis.commands", "one table of runs, over seeds"),
    "figures": Command("analysis.commands", "figures of each run, and of several together"),
    "report": Command("analysis.commands", "one HTML file about all runs"),
    "layer-ranges": Command("analysis.commands", "scores without the adapters of some layers"),
    "spans": Command("analysis.commands", "the older name of layer-ranges"),
    "verify": Command("analysis.commands", "prove a run again from its files"),
    "version": Command("stream.cli.version", "versions and machine, for a report of a fault"),
}


def command(*older: str) -> NoReturn:
    """Call one sub-command with the command line of this process, which ends with it.

    Args:
        older: what stands in front of that command line, by an older spelling.
    """
    leave_after(lambda: main([*older, *sys.argv[1:]]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Call one sub-command; return its exit code, 2 after a mistake of the user.

    Args:
        arguments: the command line; None takes that of this process.
    """
    outlive_readers()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["run"]:
        begin_early(given[1:])
    with error_boundary() as status:
        if given[:1] in (["-sc"], ["--shell-completion"]):  # a shell asks what fits
            import_module("stream.cli.completion").answer(given)
            return 0
        parsed = _parser(given[:1]).parse_args(given)
        status.code = parsed.execute(parsed) or 0
    return status.code


class _OneLineParser(argparse.ArgumentParser):
    """A parser that raises what is wrong, instead of printing its usage and ending the process."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        for name in (None, "store"):
            self.register("action", name, Once)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return a value; a path of no letters, which ``"$UNSET"`` is, would be this folder."""
        if arg_string == "" and action.type is Path:
            raise argparse.ArgumentError(action, "its value is empty")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        """Raise UserError."""
        raise UserError(f"{message} (see {self.prog} --help)")


def _parser(first: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the sub-command that is called first; of all names where none is.

    Raises:
        UserError: there is no such sub-command.
    """
    parser = _OneLineParser(
        PROG, description="Learn a stream of text tasks, measure every cell, compare what was kept."
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {installed_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    if first and not first[0].startswith("-"):
        name = choose("command", first[0], COMMANDS)
        import_module(COMMANDS[name].module).add_commands(commands)
    else:
        for name, command in COMMANDS.items():
            commands.add_parser(name, help=command.help)
    return parser


if __name__ == "__main__":
    command()
