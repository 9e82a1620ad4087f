"""What the charts of a report share: traces of methods, axes, and numbers as plotly reads them.

The one door to plotly, which is imported when a chart is drawn. Every trace says in ``meta`` of
which method it is, and where a chart has a selector, with which choice it is shown: the page draws
those that fit.
"""

import importlib
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.looks import look_of
from analysis.report.text import chart_text
from analysis.runs.methods import Method
from stream.errors import UserError
from stream.formatting import percent

INK, GRID = "#222222", "#E4E4E4"


@dataclass(frozen=True)
class Chart:
    """A plotly figure and its words.

    Attributes:
        figure: ``data`` and ``layout`` as JSON values.
        choices: (group, [(view, label)]) of the selector; empty without one.
        height: in CSS pixels.
    """

    name: str
    title: str
    note: str
    figure: dict[str, Any]
    choices: Sequence[tuple[str, Sequence[tuple[str, str]]]] = field(default_factory=list)
    height: int = 420


def require_plotly() -> Any:
    """Return ``plotly.graph_objects``; `UserError` with the command to install it if missing."""
    try:
        return importlib.import_module("plotly.graph_objects")
    except ImportError as error:
        install = f"{shlex.quote(sys.executable)} -m pip install"
        raise UserError(
            f"the report needs plotly. Install it with: {install} 'plotly>=7' "
            f"(the same, in a clone of this program: {install} -e '.[report]')"
        ) from error


def numbers(values: Iterable[float], scale: float = 1.0) -> list[float | None]:
    """Return JSON numbers, six digits of each, null for NaN."""
    array = np.asarray(list(values), dtype=np.float64) * scale
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in array]


def said_of(
    means: Iterable[float],
    half_widths: Iterable[float] | None = None,
    show: Callable[[float], str] = percent,
) -> list[str]:
    """Return what is said of points, as the tables write it: JavaScript rounds otherwise.

    Args:
        means: fractions.
        half_widths: of the intervals of the means; None where there are none.
        show: writes a mean.
    """
    if half_widths is None:
        return [show(mean) for mean in means]
    pairs = zip(means, half_widths, strict=True)
    return [f"{show(mean)} ± {percent(half)}" for mean, half in pairs]


def line(
    method: Method, x: Iterable[float | None], y: Sequence[float | None], **changes: Any
) -> Any:
    """Return the trace of one method, with its colour, dashes and marker.

    Args:
        method: decides the looks.
        x: of the points.
        y: of the points.
        changes: what plotly shall have differently.
    """
    look = look_of(method.index)
    style: dict[str, Any] = {
        "mode": "lines+markers",
        "line": {"color": look.colour, "dash": look.dashes.plotly, "width": 2},
        "marker": {"color": look.colour, "symbol": look.symbol, "size": 7},
        "name": chart_text(method.label, 160),
        "meta": {"method": method.index},
    }
    return require_plotly().Scatter(x=list(x), y=list(y), **(style | changes))


def layout(x: str, y: str, **changes: Any) -> dict[str, Any]:
    """Return axes with titles on white, without a legend: the page lists the methods once.

    Args:
        x: title of the x axis.
        y: title of the y axis.
        changes: what plotly shall have differently.
    """
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": INK, "ticks": "outside"}
    values: dict[str, Any] = {
        "template": "none",
        "showlegend": False,
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "margin": {"l": 60, "r": 16, "t": 12, "b": 48},
        "hoverlabel": {"namelength": -1, "align": "left"},
        "xaxis": {**axis, "title": {"text": x, "standoff": 8}, "automargin": True},
        "yaxis": {**axis, "title": {"text": y, "standoff": 8}, "automargin": True},
    }
    for name, value in changes.items():
        values[name] = values[name] | value if isinstance(values.get(name), dict) else value
    return values


def figure(data: Sequence[Any], layout: dict[str, Any]) -> dict[str, Any]:
    """Return a figure as JSON values; plotly has checked every name and value in it."""
    graph_objects = require_plotly()
    checked = graph_objects.Layout(layout).to_plotly_json()
    checked.pop("template", None)
    return {"data": [trace.to_plotly_json() for trace in data], "layout": checked}
