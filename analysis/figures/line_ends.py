"""Names of lines beside their ends: in the order of the ends, none on another.

A line is told from many others by following it to its name, not by its looks alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOM = 0.2  # inches from a name to the next
LETTER = 0.078  # inches, of a letter of nine points, at most on average
STUB = 0.75  # inches from the axes to a name: the way there, and a sample of the line
SAMPLE = 0.3, 0.65  # inches from the axes: where the sample begins and ends


@dataclass(frozen=True)
class LineEnd:
    """Where a line ends, and what is said of it.

    Attributes:
        x: of its last known point.
        y: of its last known point; NaN where it has none, then its name stands lowest.
        text: its name, and what to know of the end.
        style: the keywords of the line.
    """

    x: float
    y: float
    text: str
    style: dict[str, Any]


def width_of(texts: Sequence[str]) -> float:
    """Return the inches that names of lines take beside the axes."""
    return STUB + LETTER * max(map(len, texts)) + 0.1


def height_of(number: int) -> float:
    """Return the inches that names of so many lines take."""
    return ROOM * number


def beside(figure: Figure, texts: Sequence[str]) -> tuple[Axes, Axes]:
    """Add axes for lines, and right of them room for their names: axes without anything."""
    room = width_of(texts)
    ratios = [max(figure.get_size_inches()[0] - room - 0.9, 1.0), room]
    axes, names = figure.subplots(1, 2, width_ratios=ratios)
    names.set_axis_off()
    return axes, names


def name_ends(axes: Axes, names: Axes, ends: Sequence[LineEnd]) -> None:
    """Write the names into their room, each joined to the end of its line.

    Everything else of the figure is there already: it is laid out, to know how high the axes are.

    Args:
        axes: of the lines.
        names: the room, right of the axes and as high.
        ends: of the lines.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    height, width = box.height / figure.dpi, names.get_window_extent().width / figure.dpi
    to_fraction = axes.transData + axes.transAxes.inverted()
    wanted = np.array([to_fraction.transform((end.x, end.y))[1] for end in ends])
    places = spread(np.nan_to_num(wanted, nan=-1.0), ROOM / height)
    for end, place in zip(ends, places, strict=True):
        _write(axes, names, end, (float(place), width))


def _write(axes: Axes, names: Axes, end: LineEnd, where: tuple[float, float]) -> None:
    """Write one name with a sample of its line, and draw the way from the line's end.

    Args:
        axes: of the line.
        names: the room.
        end: of the line.
        where: the height of the name as a fraction of the axes, the width of the room in inches.
    """
    place, width = where
    first, last = (inch / width for inch in SAMPLE)
    style = {**end.style, "lw": 1.8, "clip_on": False, "transform": names.transAxes}
    style.pop("markevery", None)
    middle = (first + last) / 2
    names.plot([first, middle, last], [place] * 3, **{**style, "markevery": [1]})
    names.text(STUB / width, place, end.text, va="center", fontsize=9, transform=names.transAxes)
    if np.isnan(end.y):
        return
    way = {"color": end.style["color"], "lw": 0.7, "alpha": 0.6, "clip_on": False}
    joined = names.annotate(
        "",
        (end.x, end.y),
        (first, place),
        xycoords=axes.transData,
        textcoords=names.transAxes,
        arrowprops={"arrowstyle": "-", "shrinkA": 0, "shrinkB": 3, **way},
        annotation_clip=False,
    )
    joined.set_in_layout(False)  # it begins in other axes


def spread(wanted: np.ndarray, room: float) -> np.ndarray:
    """Return places at least ``room`` apart, inside 0..1 if they fit, as near as can be to others.

    Nearest in squared distance, in the same order: isotonic regression by pooling neighbours.

    >>> spread(np.array([0.5, 0.5, 0.9]), 0.1).round(2).tolist()
    [0.45, 0.55, 0.9]

    Args:
        wanted: float64 [n].
        room: between two neighbours.
    """
    order = np.argsort(wanted, kind="stable")
    steps = room * np.arange(len(wanted))
    blocks: list[tuple[float, int]] = []  # means of neighbours that touch, and their number
    for value in wanted[order] - steps:
        mean, number = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            before, times = blocks.pop()
            mean = (before * times + mean * number) / (times + number)
            number += times
        blocks.append((mean, number))
    means = np.concatenate([np.full(number, mean) for mean, number in blocks])
    low, high = room / 2, 1 - room / 2 - steps[-1]
    if high < low:  # they do not fit: as far above as below
        low = high = (low + high) / 2
    places = np.empty(len(wanted))
    places[order] = np.clip(means, low, high) + steps
    return places
