"""What a reader of a figure sees of its texts, and where."""

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


def check_readable(figure: Figure) -> list[str]:
    """Assert that no text is cut off or covers another; return the texts."""
    found = [(text, box.padded(-0.5)) for text, box in visible_texts(figure)]
    for index, (text, box) in enumerate(found):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, f"{text!r} is cut off"
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1, f"{text!r} is cut off"
        covered = [other for other, place in found[:index] if place.overlaps(box)]
        assert not covered, f"{text!r} on {covered[0]!r}"
    return [text for text, _ in found]
