"""Runs sorted by the value of one setting: the lines and points of `against_setting`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.runs.collect import RecordedRun
from analysis.runs.methods import build_methods, repetitions
from analysis.runs.names import method_labels, settings_of
from analysis.runs.values import setting as setting_of
from analysis.runs.values import trained_parameters
from stream.errors import UserError, unknown

TRAINED, METHOD = "trained_parameters", "method"
LOG_RATIO = 10  # a longer range of positive numbers is drawn on a logarithmic axis
UNITS = {
    TRAINED: "parameters trained for the task",
    "learner.lr": "learning rate (learner.lr)",
    "learner.init_std": "deviation of the first weights (learner.init_std)",
}


@dataclass
class Series:
    """One line: a learner with its other settings.

    Attributes:
        values: the setting's value of each point; for trained parameters the mean over the tasks.
        by_task: the x of each point, one per task.
        scores: final scores of each point, float64 [n, T].
    """

    label: str
    values: list[Any] = field(default_factory=list)
    by_task: list[np.ndarray] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)


@dataclass
class BySetting:
    """Runs by the value of one setting.

    Attributes:
        setting: dotted, or `TRAINED` or `METHOD`.
        series: the lines to draw.
        band: final scores of full fine-tuning, float64 [n, T]; None without any.
        left_out: a line for each run that is not drawn.
    """

    setting: str
    series: list[Series]
    band: np.ndarray | None
    left_out: list[str]

    @property
    def is_numeric(self) -> bool:
        """Whether every value is a number."""
        return all(_is_number(x) for series in self.series for x in series.values)

    @property
    def is_log(self) -> bool:
        """Whether the values span so much that only a logarithmic axis shows them."""
        values = [x for series in self.series for x in series.values]
        return min(values) > 0 and max(values) / min(values) >= LOG_RATIO

    @property
    def categories(self) -> list[Any]:
        """The values in order of appearance."""
        return list(dict.fromkeys(x for series in self.series for x in series.values))

    @property
    def num_values(self) -> int:
        """How many different values there are."""
        return len(self.categories)

    @property
    def axis_label(self) -> str:
        """The setting's name, with its unit where it has one."""
        return UNITS.get(self.setting, self.setting)

    @property
    def num_seeds(self) -> list[int]:
        """How many seeds each point stands for."""
        return [len(scores) for series in self.series for scores in series.scores]

    def positions(self, series: Series, task: int) -> list[float]:
        """Where the points of a series stand in the panel of a task."""
        if self.is_numeric:
            return [float(x[task]) for x in series.by_task]
        return [float(self.categories.index(x)) for x in series.values]


def by_setting(runs: Sequence[RecordedRun], setting: str) -> BySetting:
    """Sort complete runs of one stream by the value of a setting.

    Raises:
        UserError: no such setting, the same value in all runs, or no complete run.
    """
    complete = [run for run in runs if run.record.status == "complete"]
    partial = [run for run in runs if run.record.status != "complete"]
    left_out = [f"left out, not complete: {run.path}" for run in partial]
    if not complete:
        raise UserError("no run is complete")
    values = _values(complete, setting)
    if all(value is None for value in values):
        raise unknown("setting", setting, [*varying(complete), TRAINED, METHOD])
    by_run = {id(run): value for run, value in zip(complete, values, strict=True)}
    with_value, rest = [], []
    for run in complete:
        is_baseline = setting in (TRAINED, METHOD) and run.record.learner == "independent"
        (rest if is_baseline or by_run[id(run)] is None else with_value).append(run)
    if len({str(by_run[id(run)]) for run in with_value}) < 2:
        choices = ", ".join([*varying(complete), TRAINED, METHOD])
        raise UserError(f"{setting} has one value in all runs. What differs: {choices}")
    band = [run for run in rest if run.record.learner == "independent"]
    left_out += [
        f"left out: {run.record.learner} has no setting {setting}: {run.path}"
        for run in rest
        if run.record.learner != "independent"
    ]
    scores = _final_scores(repetitions(band)) if band else None
    return BySetting(setting, _series(with_value, by_run, setting), scores, left_out)


def _values(runs: Sequence[RecordedRun], setting: str) -> list[Any]:
    """Each run's value; None where it has none."""
    if setting == METHOD:
        named = {id(run): m.full_label for m in build_methods(runs) for run in m.runs}
        return [named[id(run)] for run in runs]
    if setting == TRAINED:
        return [trained_parameters(run.record) for run in runs]
    return [setting_of(run.record, setting) for run in runs]


def varying(runs: Sequence[RecordedRun]) -> list[str]:
    """The settings of a method that differ between runs that have them."""
    settings = [settings_of(run.record) for run in runs]
    keys = sorted({key for one in settings for key in one})
    return [key for key in keys if len({one[key] for one in settings if key in one}) > 1]


def _series(runs: Sequence[RecordedRun], values: dict[int, Any], setting: str) -> list[Series]:
    """Group runs into lines and points; points in order of value where values are numbers."""
    if setting in (TRAINED, METHOD):
        lines = [run.record.learner for run in runs]
    else:
        lines = method_labels(runs, ignore=[setting])
    points: dict[tuple[str, str], list[RecordedRun]] = {}
    for line, label, run in zip(lines, method_labels(runs), runs, strict=True):
        points.setdefault((line, label), []).append(run)
    found: dict[str, Series] = {}
    numeric = all(_is_number(values[id(run)]) for run in runs)
    items = list(points.items())
    if numeric:
        items.sort(key=lambda item: values[id(item[1][0])])
    for (line, _), members in items:
        series = found.setdefault(line, Series(line))
        value, record = values[id(members[0])], members[0].record
        if value in series.values:
            raise UserError(f"{setting}={value} has several methods of {line}; give fewer runs")
        series.values.append(value)
        if setting == TRAINED:
            rows = record.ledger.tasks
            series.by_task.append(np.array([row.trained_parameters for row in rows]))
        else:
            series.by_task.append(np.full(len(record.order), value if numeric else np.nan))
        series.scores.append(_final_scores(repetitions(members)))
    order = list(dict.fromkeys(lines))
    return [found[line] for line in order]


def _final_scores(runs: Sequence[RecordedRun]) -> np.ndarray:
    """Scores at the end of the stream, float64 [n, T]."""
    return np.array([run.record.scores[-1] for run in runs])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
