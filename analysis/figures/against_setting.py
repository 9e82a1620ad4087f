"""Scores of every task against a setting (Houlsby et al. 2019, figures 4 and 6), and variants."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from analysis.figures.setting_series import TRAINED, BySetting, by_setting
from analysis.figures.style import (
    heading,
    label_log_axis,
    mark_style,
    panel_grid,
    show_percent,
    show_possible,
    tidy,
)
from analysis.looks import look_of
from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import mean_and_half_width, over_seeds
from stream.report.canvas import GREY, display_names, new_figure, plain


def against_setting(runs: Sequence[RecordedRun], setting: str) -> tuple[Figure, list[str]]:
    """Draw the score of every task against a setting, one panel per task.

    Full fine-tuning (`independent`) without that setting is a band: its mean and interval.

    Returns:
        The figure, and a line for each run that is left out.

    Raises:
        UserError: no such setting, or it is the same in all runs.
    """
    found = by_setting(runs, setting)
    record = runs[0].record
    num_tasks = len(record.order)
    num_rows, num_columns = panel_grid(num_tasks)
    longest = 0 if found.is_numeric else max(len(str(x)) for s in found.series for x in s.values)
    width = max(4.6, 0.32 * found.num_values + 1.2) * num_columns + 0.5
    height = (3.4 + 0.075 * min(longest, 60)) * num_rows + 1.6 + 0.25 * len(found.series)
    note = f"scores after the whole stream, {over_seeds(found.num_seeds)}"
    figure = new_figure(max(width, 8), height, heading(runs, note))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    titles = zip(display_names(record), record.metric_names, strict=True)
    for task, (axes, (name, metric)) in enumerate(zip(panels, titles, strict=False)):
        _draw_panel(axes, found, task)
        _label_values(axes, found, is_lowest=task + num_columns >= num_tasks)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_ylabel(f"{plain(metric.replace('_', ' '))} (%)")
    for axes in panels[num_tasks:]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, alignment="left")
    return figure, found.left_out


def _draw_panel(axes: Axes, found: BySetting, task: int) -> None:
    """Draw one task: the band of full fine-tuning, and every series with its interval."""
    if found.band is not None:
        mean, half_width = map(float, mean_and_half_width(found.band[:, task]))
        if len(found.band) > 1:
            axes.axhspan(mean - half_width, mean + half_width, color=GREY, alpha=0.3, lw=0)
        axes.axhline(mean, color=GREY, ls="--", label="full fine-tuning (independent)")
    for index, series in enumerate(found.series):
        style: dict[str, Any] = mark_style(index)
        style["linestyle"] = look_of(index).dashes.matplotlib if found.is_numeric else "none"
        where = found.positions(series, task)
        stats = [mean_and_half_width(scores[:, task]) for scores in series.scores]
        means, half_widths = zip(*stats, strict=True)
        axes.errorbar(where, means, half_widths, ms=5, label=plain(series.label, 80), **style)
    show_percent(axes)
    show_possible(axes)
    tidy(axes)


def _label_values(axes: Axes, found: BySetting, *, is_lowest: bool) -> None:
    """Label the x axis with the values of the setting; in the lowest panel also with its name."""
    axes.set_xlabel(found.axis_label if is_lowest else "")
    if found.is_numeric:
        if found.is_log:
            label_log_axis(axes.xaxis, axes.get_xlabel(), EngFormatter())
        if found.setting != TRAINED:
            ticks = sorted(found.categories)
            axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        names = [plain(str(x), 60) for x in found.categories]
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8.5)
