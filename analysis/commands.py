"""The commands of analysis: compare, figures, report, layer-ranges, verify.

`add_commands` offers them to a command line. Each sets ``execute``, which takes the parsed
arguments, returns the exit code and raises `UserError` in one line.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import layer_ranges, verify
from analysis.errors import in_one_line
from analysis.runs.collect import RecordedRun, collect
from analysis.runs.comparable import largest_comparable
from stream.atomic_io import write_atomic
from stream.errors import UserError

SOME_LEFT_OUT = 1
EPILOG = """exit code: 0 all runs are reported; 1 some are left out or broken, each is named in a
line on standard error, the rest is reported; 2 nothing could be reported"""


def add_commands(subparsers: Any) -> None:
    """Add every command of analysis to the sub-commands of a parser."""
    _add_compare(subparsers)
    _add_figures(subparsers)
    _add_report(subparsers)
    layer_ranges.add_command(subparsers)
    verify.add_command(subparsers)


def _add_compare(subparsers: Any) -> None:
    compare = subparsers.add_parser(
        "compare",
        help="one table of runs, with mean and deviation over seeds",
        description="Print one table of runs of one stream: scores, what was lost, what it cost. "
        "Runs of the same learner and settings with several seeds get a line of mean and sample "
        "deviation. Complete joint and independent runs among them are references: the other runs "
        "of their seed and backbone get the gap to them. Of runs of several streams, orders or "
        "data the largest group is compared (of equal ones the first), each other run is named.",
        epilog=EPILOG,
    )
    for name, what in (
        ("csv", "also write the runs as CSV, as fractions"),
        ("markdown", "also write the table as Markdown"),
        ("latex", "also write the table as LaTeX (booktabs)"),
    ):
        compare.add_argument(f"--{name}", type=Path, metavar="FILE", help=what)
    compare.add_argument(
        "--against",
        metavar="METHOD",
        help="a learner, or a method as it stands in the table: also its differences from all "
        "others, paired by seed, with 95%% bootstrap intervals over the seeds; with --csv in "
        "FILE.differences.csv",
    )
    compare.set_defaults(execute=compare_runs)
    _add_runs(compare)


def _add_figures(subparsers: Any) -> None:
    figures = subparsers.add_parser(
        "figures",
        help="figures of each run, and of several runs together",
        description="Write PNG, SVG and PDF: for each run its matrix, scores and parameters, for "
        "runs of one stream what they show together. Figures without anything to show are named.",
        epilog=EPILOG,
    )
    figures.add_argument(
        "--out", type=Path, metavar="DIR", required=True, help="folder to write to"
    )
    figures.add_argument(
        "--only",
        metavar="NAME[,NAME]",
        help="only these of: runs (those of each run), matrices, average, forgetting, growth, "
        "cost, stability, tradeoff, orders",
    )
    figures.add_argument(
        "--x",
        metavar="SETTING",
        help="draw the score of every task against a setting that differs (learner.size, "
        "learner.init_std, ...), against trained_parameters or by method; only that figure, "
        "unless --only names others",
    )
    figures.set_defaults(execute=draw_runs)
    _add_runs(figures)


def _add_report(subparsers: Any) -> None:
    report = subparsers.add_parser(
        "report",
        help="one HTML file about all runs, readable without a network",
        description="Write one HTML file: numbers over seeds, matrices with a slider, scores over "
        "the stream, forgetting, growth, cost, learning curves, tasks, data, settings. Of runs of "
        "several streams the largest group is reported, each other run is named.",
        epilog=EPILOG,
    )
    report.add_argument(
        "--out", type=Path, metavar="FILE.html", required=True, help="file to write"
    )
    report.set_defaults(execute=report_runs)
    _add_runs(report)


def _add_runs(command: Any) -> None:
    what = "a run folder, or a folder that is searched for runs"
    command.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=what)


def complain(message: str) -> None:
    """Write one line to standard error."""
    print(f"analysis: {message}", file=sys.stderr)


def load_runs(paths: Sequence[Path]) -> tuple[list[RecordedRun], list[str]]:
    """Load runs, naming what is broken; return them, and a line for each that is.

    Raises:
        UserError: there is no usable run.
    """
    runs, problems = collect(paths)
    for problem in problems:
        complain(problem)
    if not runs:
        raise UserError("no usable run")
    return runs, problems


@in_one_line()
def compare_runs(arguments: argparse.Namespace) -> int:
    """Print the table; write what is wanted; return the exit code."""
    from analysis.tables.compare import comparison_csv, comparison_table, difference_csv
    from analysis.tables.paired import choose_method, difference_table
    from analysis.tables.text_table import latex, markdown, show

    runs, problems = load_runs(arguments.runs)
    runs, left_out = largest_comparable(runs)
    for line in left_out:
        complain(line)
    tables = [comparison_table(runs)]
    if arguments.against is not None:
        tables.append(difference_table(runs, arguments.against))
    for table in tables:
        show(table)
    if arguments.csv is not None:
        write_text(arguments.csv, comparison_csv(runs))
        if arguments.against is not None:
            target = arguments.csv.with_name(f"{arguments.csv.stem}.differences.csv")
            write_text(target, difference_csv(runs, choose_method(runs, arguments.against)))
    if arguments.markdown is not None:
        write_text(arguments.markdown, "\n".join(map(markdown, tables)))
    if arguments.latex is not None:
        write_text(arguments.latex, "\n".join(map(latex, tables)))
    return SOME_LEFT_OUT if problems or left_out else 0


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all, and the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())


@in_one_line()
def draw_runs(arguments: argparse.Namespace) -> int:
    """Write the figures and name them; return the exit code."""
    from analysis.figures.write import write_figures

    runs, problems = load_runs(arguments.runs)
    only = arguments.only.split(",") if arguments.only else []
    drawn = write_figures(runs, arguments.out, only=only, setting=arguments.x)
    for line in [*drawn.notes, *drawn.left_out]:
        complain(line)
    if not drawn.paths:
        raise UserError("nothing to draw")
    print("\n".join(map(str, drawn.paths)))
    return SOME_LEFT_OUT if problems or drawn.left_out else 0


@in_one_line()
def report_runs(arguments: argparse.Namespace) -> int:
    """Write the report and name it; return the exit code."""
    from analysis.report.plot import require_plotly
    from analysis.report.write import write_report

    require_plotly()
    runs, problems = load_runs(arguments.runs)
    left_out = write_report(runs, problems, arguments.out)
    for line in left_out:
        complain(line)
    print(arguments.out)
    return SOME_LEFT_OUT if problems or left_out else 0
