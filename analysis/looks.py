"""How the method of a number looks, in the words of matplotlib, of plotly and of the page."""

from dataclasses import dataclass

from stream.report.canvas import BLUE, GREEN, ORANGE

# Okabe and Ito 2008, with a dark red of Tol in place of the yellow that is hard to see on white.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#661100")


@dataclass(frozen=True)
class Marker:
    """A shape: its name in matplotlib and in plotly, and a letter that shows it."""

    matplotlib: str
    plotly: str
    letter: str


@dataclass(frozen=True)
class Dashes:
    """A line's pattern: its name in matplotlib and in plotly, and SVG's ``stroke-dasharray``."""

    matplotlib: str
    plotly: str
    svg: str


@dataclass(frozen=True)
class Look:
    """Colour and shapes of one method."""

    colour: str
    marker: Marker
    dashes: Dashes


MARKERS = (  # shapes tell apart what colours may not
    Marker("o", "circle", "●"),
    Marker("s", "square", "■"),
    Marker("D", "diamond", "◆"),
    Marker("^", "triangle-up", "▲"),
    Marker("v", "triangle-down", "▼"),
    Marker("P", "cross", "✚"),
    Marker("X", "x", "✕"),
    Marker("*", "star", "★"),
    Marker("<", "triangle-left", "◄"),
    Marker(">", "triangle-right", "►"),
)
DASHES = (
    Dashes("-", "solid", ""),
    Dashes("--", "dash", "6 3"),
    Dashes("-.", "dashdot", "6 3 2 3"),
    Dashes(":", "dot", "2 3"),
)


def look_of(index: int) -> Look:
    """Return the look of the method of that number; the first 32 all differ."""
    return Look(
        COLOURS[index % len(COLOURS)],
        MARKERS[index % len(MARKERS)],
        DASHES[index // len(COLOURS) % len(DASHES)],
    )
