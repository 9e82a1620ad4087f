"""Figure 6 of Houlsby et al. 2019, left and centre: scores without the adapters of some layers.

Serves a run again, so it needs torch, as `analysis.verify` does; the other commands do not.
"""

import argparse
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from stream.errors import require
from stream.formatting import percent
from stream.report.plots import new_figure, plain, save, stream_name

if TYPE_CHECKING:
    from stream.run.layer_ablation import LayerRangeScores

EPILOG = """For example:

  python run_stream.py learner=adapter 'task=[mnli_matched,cola]'
  python -m analysis spans RUN task=mnli_matched,cola
"""


def add_command(commands: Any) -> None:
    """Add ``spans`` to the command line of analysis."""
    command = commands.add_parser(
        "spans",
        help="scores without the trained adapters of every span of layers",
        description="Take trained adapters out of every contiguous span of layers, without "
        "learning again, and draw the scores as first layer x last layer. Needs torch.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("run", type=Path, metavar="RUN", help="the folder of one run")
    command.add_argument("tasks", metavar="task=NAME[,NAME]", help="tasks of that run")
    command.add_argument("--split", choices=("validation", "test"), default="validation")
    command.add_argument("--device", default="auto", help="cpu, cuda or auto")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write to (default: RUN/figures)"
    )
    command.set_defaults(execute=remove_spans)


def remove_spans(arguments: argparse.Namespace) -> list[str]:
    """Measure and draw; return the files written and what was found, a line each.

    Raises:
        UserError: no such run, task or weights.
    """
    from stream.atomic_io import write_json
    from stream.run.layer_ablation import layer_range_scores
    from stream.run.load import open_run

    key, _, names = arguments.tasks.partition("=")
    require(key == "task" and bool(names), f"expected task=NAME, got {arguments.tasks!r}")
    chosen = names.split(",")
    run = open_run(arguments.run, chosen, arguments.device)
    tasks = [task for task in run.tasks if task.name in chosen]
    found = [layer_range_scores(run, task, arguments.split) for task in tasks]
    titles = dict(zip(run.record.order, run.record.titles, strict=True))
    folder = arguments.out or arguments.run / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "spans.json", {scores.task: _as_json(scores) for scores in found})
    figure = span_figure(
        msgspec.to_builtins(run.record), [titles[scores.task] for scores in found], found
    )
    written = [folder / "spans.json", *save(figure, folder, "spans")]
    return [*map(str, written), *(_sentence(titles[scores.task], scores) for scores in found)]


def _sentence(title: str, scores: "LayerRangeScores") -> str:
    """Say the numbers that the paper says."""
    single = [scores.without[i, i] for i in range(len(scores.without))]
    worst = min(range(len(single)), key=single.__getitem__)
    return (
        f"{title}: {percent(scores.full)} with all adapters; without those of one layer at worst "
        f"{percent(single[worst])} (layer {worst}); without any {percent(scores.without[0, -1])}; "
        f"always the most frequent label {percent(scores.majority)}"
    )


def _as_json(scores: "LayerRangeScores") -> dict[str, Any]:
    """Return scores as JSON values, null where there is no span."""
    spans = [[None if isnan(s) else s for s in row] for row in scores.without.tolist()]
    return {
        "split": scores.split,
        "full": scores.full,
        "majority": scores.majority,
        "without_first_to_last": spans,
    }


def span_figure(
    results: dict[str, Any], titles: Sequence[str], found: "Sequence[LayerRangeScores]"
) -> Figure:
    """Draw one heat map a task: first removed layer down, last removed layer across."""
    layers = len(found[0].without)
    size = max(0.5 * layers, 3.0)  # inches
    heading = (
        f"{plain(results['learner'])} on {stream_name(results)}, {plain(results['backbone'])}, "
        f"seed {results['seed']}, {found[0].split} scores\n"
        "trained adapters removed from a span of layers, nothing learned again"
    )
    figure = new_figure((size + 2.2) * len(found), size + 2.2, heading)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, title, scores in zip(panels, titles, found, strict=True):
        _draw(figure, axes, plain(title), scores)
    return figure


def _draw(figure: Figure, axes: Axes, title: str, scores: "LayerRangeScores") -> None:
    """Draw one task's spans, with the majority line in the colour bar."""
    low = min(float(np.nanmin(scores.without)), scores.majority)
    high = max(float(np.nanmax(scores.without)), scores.full)
    mesh = axes.imshow(scores.without, vmin=low, vmax=max(high, low + 1e-3), aspect="auto")
    middle = (low + high) / 2
    for first, row in enumerate(scores.without):
        for last in range(first, len(row)):
            colour = "white" if row[last] < middle else "black"
            label = percent(row[last])
            axes.text(last, first, label, ha="center", va="center", color=colour, size=8)
    numbers = range(len(scores.without))
    axes.set_xticks(numbers)
    axes.set_yticks(numbers)
    axes.set(xlabel="last removed layer", ylabel="first removed layer")
    note = f"all adapters {percent(scores.full)}, majority {percent(scores.majority)}"
    axes.set_title(f"{title}\n{note}", loc="left", size=10)
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda s, _: percent(s, 0)))
    bar.ax.axhline(scores.majority, color="#D55E00", lw=3)
    bar.set_label("score (%); orange: always the most frequent label")
