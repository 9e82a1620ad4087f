"""The commands of analysis: compare, figures, report, layer-ranges, verify.

`add_commands` offers them to a command line. Each sets ``execute``, which takes the parsed
arguments, returns the exit code and raises `UserError` in one line.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import layer_ranges, verify
from analysis.errors import in_one_line
from analysis.outputs import check_different, check_file, check_folder, write_text, writing
from analysis.runs.collect import RecordedRun, collect
from analysis.runs.comparable import largest_comparable
from stream.errors import UserError

if TYPE_CHECKING:
    from analysis.tables.text_table import TextTable

SOME_LEFT_OUT = 1
FILES = {
    "csv": "also write the runs as CSV, as fractions",
    "markdown": "also write the table as Markdown",
    "latex": "also write the table as LaTeX (booktabs)",
}
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
        help="one table of runs, with mean and 95%% t interval over seeds",
        description="Print one table of runs of one stream: scores, what was lost, what it cost. "
        "Runs of the same learner and settings with several seeds get a line of their mean and its "
        "95% t interval. What is the same in all runs stands above the table, which has several "
        "parts where it is wider than the terminal (100 columns in a file or pipe, or $COLUMNS). "
        "Complete joint and independent runs among them are references: the other runs "
        "of their seed and backbone get the gap to them. Of runs of several streams, orders or "
        "data the largest group is compared (of equal ones the first), each other run is named.",
        epilog=EPILOG,
    )
    for name, what in FILES.items():
        compare.add_argument(f"--{name}", type=Path, metavar="FILE", help=what)
    compare.add_argument(
        "--against",
        metavar="METHOD",
        help="a learner, or a method as it stands in the table: also its differences from all "
        "others, paired by seed, with 95%% t intervals over the seeds; with --csv in "
        "FILE.differences.csv",
    )
    compare.add_argument(
        "--means", action="store_true", help="a line for each method instead of one for each run"
    )
    compare.add_argument(
        "--json",
        action="store_true",
        help="print JSON in place of the table: runs, methods with all settings, estimates "
        "(fields: docs/metrics.md)",
    )
    compare.set_defaults(execute=compare_runs, command="compare")
    _add_runs(compare)


def _add_figures(subparsers: Any) -> None:
    figures = subparsers.add_parser(
        "figures",
        help="figures of each run, and of several runs together",
        description="Write PNG, SVG and PDF: for each run its matrix, scores, forgetting and "
        "parameters, for runs of one stream what they show together. Figures without anything to "
        "show are named.",
        epilog=EPILOG,
    )
    figures.add_argument(
        "--out", type=Path, metavar="DIR", required=True, help="folder to write to"
    )
    figures.add_argument(
        "--only",
        metavar="NAME[,NAME]",
        help="only these of: runs (those of each run), matrices, average, forgetting_map, "
        "forgetting_curves, forgetting, growth, cost, parameters, stability, tradeoff, orders",
    )
    figures.add_argument(
        "--x",
        metavar="SETTING",
        help="draw the score of every task against a setting that differs (learner.size, "
        "learner.init_std, ...), against trained_parameters or by method; only that figure, "
        "unless --only names others",
    )
    figures.set_defaults(execute=draw_runs, command="figures")
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
    report.set_defaults(execute=report_runs, command="report")
    _add_runs(report)


def _add_runs(command: Any) -> None:
    what = "a run folder, or a folder that is searched for runs"
    command.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=what)


def complain(arguments: argparse.Namespace, lines: Sequence[str]) -> None:
    """Write lines to standard error, each with the command that has something to say."""
    for line in lines:
        print(f"{arguments.command}: {line}", file=sys.stderr)


def load_runs(arguments: argparse.Namespace) -> tuple[list[RecordedRun], list[str]]:
    """Load the runs of a command, naming what is broken; return them, and a line for each that is.

    Raises:
        UserError: there is no usable run.
    """
    runs, problems = collect(arguments.runs)
    if not runs and len(problems) == 1:
        raise UserError(problems[0])
    complain(arguments, problems)
    if not runs:
        raise UserError("no usable run")
    return runs, problems


@in_one_line()
def compare_runs(arguments: argparse.Namespace) -> int:
    """Print the table, or JSON; write what is wanted; return the exit code."""
    from analysis.tables.files import comparison_json
    from analysis.tables.paired import choose_method
    from analysis.tables.text_table import show

    wanted = {name: path for name in FILES if (path := getattr(arguments, name)) is not None}
    for name, path in wanted.items():
        check_file(f"--{name}", path, f"runs.{name}")
    check_different({f"--{name}": path for name, path in wanted.items()})
    runs, problems = load_runs(arguments)
    runs, left_out = largest_comparable(runs)
    complain(arguments, left_out)
    against = None if arguments.against is None else choose_method(runs, arguments.against)
    tables = _tables(runs, against, only_means=arguments.means)
    if arguments.json:
        values = comparison_json(runs, against, [*problems, *left_out])
        print(json.dumps(values, indent=1, allow_nan=False))
    else:
        for table in tables:
            show(table)
    _write_files(arguments, runs, against, tables)
    return SOME_LEFT_OUT if problems or left_out else 0


def _tables(
    runs: Sequence[RecordedRun], against: str | None, *, only_means: bool
) -> list["TextTable"]:
    """The comparison, and where a method is given the differences from it."""
    from analysis.tables.compare import comparison_table
    from analysis.tables.paired import difference_table

    differences = [] if against is None else [difference_table(runs, against)]
    return [comparison_table(runs, only_means=only_means), *differences]


def _write_files(
    arguments: argparse.Namespace,
    runs: Sequence[RecordedRun],
    against: str | None,
    tables: Sequence["TextTable"],
) -> None:
    """Write the files that are wanted.

    Args:
        arguments: name the files.
        runs: comparable ones.
        against: a method's label; None without paired differences.
        tables: what Markdown and LaTeX show.
    """
    from analysis.tables.files import comparison_csv, difference_csv
    from analysis.tables.text_table import latex, markdown

    if (path := arguments.csv) is not None:
        write_text("--csv", path, comparison_csv(runs))
        if against is not None:
            target = path.with_name(f"{path.stem}.differences.csv")
            write_text("--csv", target, difference_csv(runs, against))
    for name, form in (("markdown", markdown), ("latex", latex)):
        if (path := getattr(arguments, name)) is not None:
            write_text(f"--{name}", path, "\n".join(map(form, tables)))


@in_one_line()
def draw_runs(arguments: argparse.Namespace) -> int:
    """Write the figures and name them; return the exit code."""
    from analysis.figures.write import write_figures

    check_folder("--out", arguments.out)
    runs, problems = load_runs(arguments)
    only = arguments.only.split(",") if arguments.only else []
    with writing("--out", arguments.out):
        drawn = write_figures(runs, arguments.out, only=only, setting=arguments.x)
    complain(arguments, [*drawn.notes, *drawn.left_out, *drawn.cautions])
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
    check_file("--out", arguments.out, "report.html")
    runs, problems = load_runs(arguments)
    with writing("--out", arguments.out):
        left_out = write_report(runs, problems, arguments.out)
    complain(arguments, left_out)
    print(arguments.out)
    return SOME_LEFT_OUT if problems or left_out else 0
