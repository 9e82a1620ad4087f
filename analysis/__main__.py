"""The command line of analysis: python -m analysis compare|figures RUN..."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from analysis.collect import Run, collect
from analysis.compare import IncomparableRunsError, comparison_csv, comparison_table
from analysis.figures import write_comparison_figures, write_run_figures

USAGE_ERROR = 2


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis",
        description="Read run folders: compare runs in a table, draw their figures.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    compare = commands.add_parser(
        "compare",
        help="one table of runs, with mean and deviation over seeds",
        description="Print one table of runs of one stream: scores, what was lost, what it cost. "
        "Runs with different streams, orders or data are refused (exit code 2). Runs of the same "
        "learner and settings with several seeds get a line of mean and sample deviation.",
    )
    compare.add_argument("--csv", type=Path, metavar="FILE", help="also write the runs as CSV")
    compare.set_defaults(execute=compare_runs)
    figures = commands.add_parser(
        "figures",
        help="figures of each run, and of several runs side by side",
        description="Write PNG and SVG: for each run its matrix, scores and parameters; for "
        "several runs of one stream also their matrices side by side and their average scores.",
    )
    figures.add_argument(
        "--out", type=Path, metavar="DIR", required=True, help="folder to write to"
    )
    figures.set_defaults(execute=draw_runs)
    for command in (compare, figures):
        command.add_argument(
            "runs",
            type=Path,
            nargs="+",
            metavar="RUN",
            help="a run folder, or a folder that is searched for runs",
        )
    return parser


def complain(message: str) -> None:
    """Write one line to standard error."""
    print(f"analysis: {message}", file=sys.stderr)


def compare_runs(runs: Sequence[Run], arguments: argparse.Namespace) -> int:
    """Print the table; write the CSV if one is wanted."""
    show(runs)
    if arguments.csv is not None:
        arguments.csv.parent.mkdir(parents=True, exist_ok=True)
        temporary = arguments.csv.with_name(f".{arguments.csv.name}.{os.getpid()}.tmp")
        temporary.write_text(comparison_csv(runs), encoding="utf-8")
        os.replace(temporary, arguments.csv)
    return 0


def show(runs: Sequence[Run]) -> None:
    """Print the table of the runs, on narrow screens in two parts; never cut in a file or pipe."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)
    table = comparison_table(runs)
    if (
        table.__rich_measure__(console, console.options.update(width=10_000)).maximum
        <= console.width
    ):
        console.print(table)
    else:
        for part in ("scores", "costs"):
            console.print(comparison_table(runs, part))


def draw_runs(runs: Sequence[Run], arguments: argparse.Namespace) -> int:
    """Write the figures and name them; runs of different streams get only their own."""
    written = write_run_figures(runs, arguments.out)
    if len(runs) > 1:
        try:
            written += write_comparison_figures(runs, arguments.out)
        except IncomparableRunsError as error:
            complain(f"no figures of the runs together: {error}")
    print("\n".join(map(str, written)))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it did its work, 2 after a mistake of the user."""
    arguments = build_parser().parse_args(argv)
    runs, problems = collect(arguments.runs)
    for problem in problems:
        complain(problem)
    if not runs:
        complain("no usable run")
        return USAGE_ERROR
    try:
        return arguments.execute(runs, arguments)
    except (IncomparableRunsError, OSError) as error:
        complain(str(error))
        return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
