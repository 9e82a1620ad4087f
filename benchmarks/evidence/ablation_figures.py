"""Figures of the paper's ablations, from their records: figures 4, 6 and 7 of Houlsby et al."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures.against_setting import against_setting
from analysis.figures.layer_ranges import layer_range_figure
from analysis.figures.setting_series import TRAINED
from analysis.runs.collect import RecordedRun
from benchmarks.evidence.ablation_quantities import runs_of
from benchmarks.evidence.ablations import AS_CHOSEN, BY_RATE, PER_TASK, STDS, TASKS
from benchmarks.evidence.layers import WithoutLayers, read_layers
from benchmarks.evidence.methods import Method
from benchmarks.evidence.plan import ABLATED
from benchmarks.evidence.records import RUNS, Records
from stream.report.canvas import save

if TYPE_CHECKING:
    from stream.run.layer_ablation import LayerRangeScores

SETTINGS: dict[str, tuple[Sequence[Method], str]] = {
    "first_weights": ([*STDS.values()], "learner.init_std"),
    "rates": ([m for methods in BY_RATE.values() for m in methods.values()], "learner.lr"),
    "sizes": (PER_TASK, TRAINED),
}
"""What is drawn against which setting, by the name of the file."""
OF_LAYERS = "layers"


SHOWN = {
    "first_weights": "Score of each task against the standard deviation of the first weights",
    OF_LAYERS: "Score of each task without the adapters of each range of layers: heat maps",
    "rates": "Score of each task against the learning rate, adapters and full fine-tuning",
    "sizes": "Score of each task against the parameters that are trained for it",
}
"""What each figure shows."""


def draw_ablations(records: Records, folder: Path) -> None:
    """Write every figure whose runs are there as PNG.

    Args:
        records: all of them.
        folder: where to.
    """
    for name, (methods, setting) in SETTINGS.items():
        if can_be_drawn(records, name):
            figure, _ = against_setting([*_recorded(records, methods)], setting)
            save(figure, folder, name, ("png",))
    if can_be_drawn(records, OF_LAYERS):
        found = _of_layers(records)
        means = [_mean(task, [one[task] for one in found.values()]) for task in TASKS]
        runs = runs_of(records, AS_CHOSEN)
        figure = layer_range_figure([runs[seed] for seed in found], means)
        save(figure, folder, OF_LAYERS, ("png",))


def can_be_drawn(records: Records, name: str) -> bool:
    """Whether the runs of a figure are there, or enough of them."""
    if name == OF_LAYERS:
        return bool(_of_layers(records))
    methods, _ = SETTINGS[name]
    return sum(bool(runs_of(records, method)) for method in methods) > 1


def picture(name: str) -> Callable[[Records], str]:
    """Return what a page of docs/ says to show a figure, once it is drawn."""

    def made(records: Records) -> str:
        there = can_be_drawn(records, name)
        return f"![{SHOWN[name]}](evidence/{name}.png)" if there else "No figure yet."

    return made


def _of_layers(records: Records) -> dict[int, dict[str, WithoutLayers]]:
    """Return the scores without layers, by seed and task."""
    found = {seed: read_layers(records, seed) for seed in runs_of(records, AS_CHOSEN)}
    return {seed: by_task for seed, by_task in found.items() if by_task is not None}


def _recorded(records: Records, methods: Sequence[Method]) -> Iterator[RecordedRun]:
    for method in methods:
        for seed, run in runs_of(records, method).items():
            folder = records.out / RUNS / ABLATED.name / f"{method.name}-s{seed}"
            yield RecordedRun(folder, run)


def _mean(task: str, found: Sequence[WithoutLayers]) -> "LayerRangeScores":
    """Return the mean over seeds of one task's scores."""
    from stream.run.layer_ablation import LayerRangeScores  # with torch

    return LayerRangeScores(
        task,
        "test",
        float(np.mean([one.full for one in found])),
        np.mean([one.without for one in found], axis=0),
        float(np.mean([one.majority for one in found])),
    )
