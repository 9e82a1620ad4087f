"""How the method of a number looks, in the words of matplotlib, of plotly and of the page.

There are eight colours, which all eyes tell apart, and four rounds of them. A round has a pattern
of lines of its own, and the same colour has another shape in each, which every second round leaves
hollow. So of 32 methods any two lines differ in pattern or plainly in colour, and any two marks in
shape, filling or plainly in colour.
"""

from dataclasses import dataclass

from stream.report.canvas import BLUE, GREEN, ORANGE

# Okabe and Ito 2008, with a dark red of Tol in place of the yellow that is hard to see on white.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#661100")
STEP = 3  # shapes from a round to the next; with eight shapes, no colour meets one of its own again


@dataclass(frozen=True)
class Marker:
    """A shape: its name in matplotlib and in plotly, and its outline in a square of 12 for SVG."""

    matplotlib: str
    plotly: str
    svg: str


@dataclass(frozen=True)
class Dashes:
    """A line's pattern: its name in matplotlib and in plotly, and SVG's ``stroke-dasharray``."""

    matplotlib: str
    plotly: str
    svg: str


@dataclass(frozen=True)
class Look:
    """Colour and shapes of one method; ``is_hollow`` says that only the outline is coloured."""

    colour: str
    marker: Marker
    dashes: Dashes
    is_hollow: bool

    @property
    def symbol(self) -> str:
        """The mark in plotly's words."""
        return f"{self.marker.plotly}-open" if self.is_hollow else self.marker.plotly

    @property
    def filling(self) -> str:
        """The colour inside the mark."""
        return "#FFFFFF" if self.is_hollow else self.colour


MARKERS = (
    Marker("o", "circle", "M2 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"),
    Marker("s", "square", "M2.5 2.5h7v7h-7z"),
    Marker("D", "diamond", "M6 1L11 6L6 11L1 6z"),
    Marker("^", "triangle-up", "M6 1.5L10.8 10H1.2z"),
    Marker("v", "triangle-down", "M6 10.5L10.8 2H1.2z"),
    Marker("P", "cross", "M4.3 1.5h3.4v2.8h2.8v3.4h-2.8v2.8h-3.4v-2.8h-2.8v-3.4h2.8z"),
    Marker(
        "X", "x", "M3.4 1L6 3.6L8.6 1L11 3.4L8.4 6L11 8.6L8.6 11L6 8.4L3.4 11L1 8.6L3.6 6L1 3.4z"
    ),
    Marker(
        "*", "star", "M6 .8L7.4 4.4L11.2 4.6L8.2 7L9.2 10.8L6 8.6L2.8 10.8L3.8 7L.8 4.6L4.6 4.4z"
    ),
)
DASHES = (
    Dashes("-", "solid", ""),
    Dashes("--", "dash", "6 3"),
    Dashes("-.", "dashdot", "6 3 2 3"),
    Dashes(":", "dot", "2 3"),
)


def look_of(index: int) -> Look:
    """Return the look of the method of that number; the first 32 all differ."""
    turn, place = divmod(index, len(COLOURS))
    marker = MARKERS[(place + STEP * turn) % len(MARKERS)]
    return Look(COLOURS[place], marker, DASHES[turn % len(DASHES)], is_hollow=turn % 2 == 1)
