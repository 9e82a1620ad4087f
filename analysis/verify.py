"""``python -m analysis verify RUN``: whether a finished run's files still prove what it recorded.

Serves the run again, so it needs torch.
"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.errors import in_one_line
from stream.formatting import count, visible

if TYPE_CHECKING:
    from stream.run.verify import Check

DIFFERENT = 1
JSON_SCHEMA = 1  # raised when a field is renamed or taken out
CELL = 120  # characters of a cell


def add_command(commands: Any) -> None:
    """Add ``verify`` to the command line of analysis."""
    command = commands.add_parser(
        "verify",
        help="prove a run again from its files: digests, scores, counts, metrics",
        description="Check the files of a run against their digests, evaluate every learned task "
        "again, and compare digests, scores, parameter counts, fingerprints and metrics with what "
        "was recorded. Exit code 0 if all agree, 1 on any difference, 2 if there is no such run.",
    )
    command.add_argument("run", type=Path, metavar="RUN", help="the folder of one run")
    command.add_argument(
        "--device", default="auto", help="cpu, cuda or auto; digests hold on the run's own device"
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="print JSON in place of the table (fields: docs/metrics.md)",
    )
    command.set_defaults(execute=verify_run)


@in_one_line()
def verify_run(arguments: argparse.Namespace) -> int:
    """Print the checks as a table or as JSON; return the exit code.

    Raises:
        UserError: no such run, or data that cannot be read.
    """
    from stream.run.verify import verify

    console = Console(stderr=arguments.json)
    with console.status("verifying", spinner="line"):
        checks = list(verify(arguments.run, arguments.device))
    wrong = sum(not check.ok for check in checks)
    if arguments.json:
        print(json.dumps(as_json(arguments.run, checks), indent=1))
        return DIFFERENT if wrong else 0
    console.print(check_table(checks))
    verdict = f"{count(wrong, 'check')} of {len(checks)} failed" if wrong else "all agree"
    console.print(f"{count(len(checks), 'check')}: {verdict}", highlight=False)
    return DIFFERENT if wrong else 0


def as_json(run: Path, checks: "list[Check]") -> dict[str, Any]:
    """Return the checks as JSON values."""
    return {
        "schema": JSON_SCHEMA,
        "run": str(run),
        "ok": all(check.ok for check in checks),
        "failed": sum(not check.ok for check in checks),
        "checks": [
            {"check": c.what, "recorded": c.expected, "found": c.found, "ok": c.ok} for c in checks
        ],
    }


def check_table(checks: "list[Check]") -> Table:
    """Return the checks, those that failed in red."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("check", "recorded", "found", ""):
        table.add_column(name, overflow="fold")
    for check in checks:
        row = (check.what, check.expected, check.found, "ok" if check.ok else "DIFFERENT")
        style = "" if check.ok else "bold red"
        table.add_row(*(Text(visible(cell, CELL), style=style) for cell in row))
    return table
