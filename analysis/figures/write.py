"""Which figures there are, and where they go: those of each run, and those of several together."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from analysis.figures.against_setting import against_setting
from analysis.figures.along_stream import average, growth
from analysis.figures.forgetting_curves import forgetting_curves
from analysis.figures.forgetting_map import forgetting_map
from analysis.figures.forgetting_marks import forgetting
from analysis.figures.matrices import matrices
from analysis.figures.orders import orders
from analysis.figures.score_against import cost, parameters
from analysis.figures.stability import stability
from analysis.figures.style import NothingToDrawError
from analysis.figures.tradeoff import tradeoff
from analysis.runs.cautions import cautions
from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import largest_comparable
from analysis.runs.names import method_labels
from stream.errors import choose
from stream.report.canvas import save
from stream.report.plots import FIGURES

FORMATS = ("png", "svg", "pdf")


@dataclass
class Drawn:
    """What became of a wish for figures.

    Attributes:
        paths: the files written.
        notes: figures that had nothing to show, a line each.
        left_out: runs that are in no figure of several runs, a line each.
        cautions: what to know about the means, a line each.
    """

    paths: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)


def write_figures(
    runs: Sequence[RecordedRun],
    folder: Path,
    *,
    only: Sequence[str] = (),
    setting: str | None = None,
) -> Drawn:
    """Draw runs, each by itself and those of one stream together, into a folder.

    Args:
        runs: runs of any streams; the largest group of one stream is drawn together.
        folder: where to write; it is made.
        only: names out of ``runs`` and `TOGETHER`; none means all.
        setting: what to draw scores against (`against_setting`); then only that figure, unless
            ``only`` names others.

    Raises:
        UserError: an unknown name or setting.
    """
    names = [choose("figure", name, ["runs", *TOGETHER]) for name in only]
    wanted = names or ([] if setting else ["runs", *TOGETHER])
    drawn = Drawn()
    same_stream, drawn.left_out = largest_comparable(runs)
    drawn.cautions = cautions(same_stream) if wanted != ["runs"] else []
    if "orders" in wanted:
        same_tasks, drawn.left_out = largest_comparable(runs, any_order=True)
    else:
        same_tasks = []
    if setting:
        figure, left_out = against_setting(same_stream, setting)
        drawn.left_out += left_out
        name = re.sub(r"[^A-Za-z0-9.]+", "_", setting)
        drawn.paths += save(figure, folder, f"ablation_{name}", FORMATS)
    if "runs" in wanted:
        drawn.paths += write_run_figures(runs, folder)
    for name, draw in TOGETHER.items():
        members = same_tasks if name == "orders" else same_stream
        if name in wanted and (len(members) > 1 or name in ALSO_OF_ONE or names):
            try:
                drawn.paths += save(draw(members), folder, name, FORMATS)
            except NothingToDrawError as error:
                drawn.notes.append(f"no figure {name}: {error}")
    return drawn


def write_run_figures(runs: Sequence[RecordedRun], folder: Path) -> list[Path]:
    """Write each run's figures as METHOD_seedN_FIGURE.FORMAT; return the paths."""
    written: list[Path] = []
    taken: set[str] = set()
    for label, run in zip(method_labels(runs), runs, strict=True):
        stem = re.sub(r"[^A-Za-z0-9.]+", "_", f"{label} seed{run.record.seed}")[:100]
        unique, number = stem, 2
        while unique in taken:
            unique, number = f"{stem}_{number}", number + 1
        taken.add(unique)
        for name, draw in FIGURES.items():
            written += save(draw(run.record), folder, f"{unique}_{name}", FORMATS)
    return written


TOGETHER: dict[str, Callable[[Sequence[RecordedRun]], Figure]] = {
    "matrices": matrices,
    "average": average,
    "forgetting_map": forgetting_map,
    "forgetting_curves": forgetting_curves,
    "forgetting": forgetting,
    "growth": growth,
    "cost": cost,
    "parameters": parameters,
    "stability": stability,
    "tradeoff": tradeoff,
    "orders": orders,
}
ALSO_OF_ONE = ("stability",)  # a single run without a probe gets a line, too
