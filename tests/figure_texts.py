"""What a reader of a figure sees of its texts, and where."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def visible_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every text that is drawn, with its place on the canvas in pixels."""
    figure.draw_without_rendering()  # places the texts as drawing does
    renderer = figure.canvas.get_renderer()  # pyright: ignore[reportAttributeAccessIssue]
    outside = {  # tick labels beyond the view are never drawn
        tick.label1
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    texts = [text for text in found if text not in outside]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts]


def legend_texts(figure: Figure) -> list[str]:
    """The entries of all legends, each as one line."""
    beside = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    texts = [
        text.get_text() for legend in (*beside, *figure.legends) for text in legend.get_texts()
    ]
    return [" ".join(text.split()) for text in texts]


def check_readable(figure: Figure) -> list[str]:
    """Assert that no text is cut off or covers another; return the texts."""
    texts, boxes = zip(*visible_texts(figure), strict=True)
    places = np.array([box.padded(-0.5).extents for box in boxes])
    first, last = places[:, :2], places[:, 2:]  # the lower left corner of each, the upper right one
    whole = (first >= 0) & (first < last) & (last <= [figure.bbox.x1, figure.bbox.y1])
    cut = [texts[index] for index in np.flatnonzero(~whole.all(axis=1))]
    assert not cut, f"cut off: {cut}"
    apart = (first[:, None] > last) | (last[:, None] < first)
    pairs = np.argwhere(np.triu(~apart.any(axis=2), k=1))
    assert not len(pairs), f"one on another: {[(texts[i], texts[j]) for i, j in pairs]}"
    return [*texts]
