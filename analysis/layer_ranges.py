"""Figure 6 of Houlsby et al. 2019, left and centre: scores without the adapters of some layers.

Serves a run again, so it needs torch, as `analysis.verify` does; the other commands do not.
"""

import argparse
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import in_one_line
from stream.errors import require
from stream.formatting import percent
from stream.record.run_record import RunRecord

if TYPE_CHECKING:
    from stream.run.layer_ablation import LayerRangeScores

NAME = "layer_ranges"  # of the files
EPILOG = """For example:

  task-stream run learner=adapter 'task=[mnli_matched,cola]'
  task-stream layer-ranges RUN task=mnli_matched,cola
"""


def add_command(commands: Any) -> None:
    """Add ``layer-ranges`` and its older name ``spans`` to the sub-commands of a parser."""
    command = commands.add_parser(
        "layer-ranges",
        aliases=["spans"],
        help="scores without the trained adapters of every range of layers",
        description="Take trained adapters out of every contiguous range of layers, without\n"
        "learning again, and draw the scores as first layer x last layer. Needs torch.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("run", type=Path, metavar="RUN", help="the folder of one run")
    command.add_argument("tasks", metavar="task=NAME[,NAME]", help="tasks of that run")
    command.add_argument(
        "--split",
        choices=("validation", "test"),
        default="validation",
        help="the rows to score (default: validation)",
    )
    command.add_argument("--device", default="auto", help="cpu, cuda or auto")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write to (default: RUN/figures)"
    )
    command.set_defaults(execute=remove_layer_ranges)


@in_one_line()
def remove_layer_ranges(arguments: argparse.Namespace) -> int:
    """Measure, draw, and print the files written and what was found; return the exit code.

    Raises:
        UserError: no such run, task or weights.
    """
    from analysis.figures.layer_ranges import layer_range_figure
    from analysis.outputs import check_folder, writing
    from stream.files.atomic import write_json
    from stream.report.canvas import save

    key, _, names = arguments.tasks.partition("=")
    require(key == "task" and bool(names), f"expected task=NAME, got {arguments.tasks!r}")
    record = RunRecord.read(arguments.run)
    folder = arguments.out or arguments.run / "figures"
    check_folder("--out", folder)
    found = measured(arguments.run, names.split(","), arguments.split, arguments.device)
    with writing("--out", folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{NAME}.json", as_json(found))
        drawn = save(layer_range_figure([record], found), folder, NAME)
    print(folder / f"{NAME}.json", *drawn, sep="\n")
    titles = dict(zip(record.order, record.titles, strict=True))
    for scores in found:
        print(_sentence(titles[scores.task], scores))
    return 0


def _sentence(title: str, scores: "LayerRangeScores") -> str:
    """Say the numbers that the paper says."""
    single = [scores.without[i, i] for i in range(len(scores.without))]
    worst = min(range(len(single)), key=single.__getitem__)
    return (
        f"{title}: {percent(scores.full)} with all adapters; without those of one layer at worst "
        f"{percent(single[worst])} (layer {worst}); without any {percent(scores.without[0, -1])}; "
        f"always the most frequent label {percent(scores.majority)}"
    )


def measured(
    folder: Path, names: Sequence[str], split: str, device: str
) -> "list[LayerRangeScores]":
    """Return the scores of tasks of a run without the adapters of every range of layers.

    Args:
        folder: the run folder, with its checkpoint.
        names: the tasks.
        split: what they are scored on.
        device: where they are served; ``auto`` takes a GPU where there is one.

    Raises:
        UserError: no such run, task or weights, or a learner without adapters.
    """
    from stream.run.layer_ablation import layer_range_scores
    from stream.run.load import open_run

    run = open_run(folder, names, device)
    return [layer_range_scores(run, task, split) for task in run.tasks if task.name in names]


def as_json(found: "Sequence[LayerRangeScores]") -> dict[str, dict[str, Any]]:
    """Return scores as JSON values by task, null where a range would end before it begins."""
    return {scores.task: _of_task(scores) for scores in found}


def _of_task(scores: "LayerRangeScores") -> dict[str, Any]:
    ranges = [[None if isnan(s) else s for s in row] for row in scores.without.tolist()]
    return {
        "split": scores.split,
        "full": scores.full,
        "majority": scores.majority,
        "without_first_to_last": ranges,
    }
