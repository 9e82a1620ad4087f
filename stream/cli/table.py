"""Aligned lines for people: one line each, as many columns as the screen has room for."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

GAP = 2
LEAST_ROOM = 24  # of a column that may be shortened
UNLIMITED = 10_000
MORE = "..."


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: what stands above it.
        rank: the columns of the lowest ranks are those that are shown where room is scarce.
        is_elastic: whether its cells may be shortened, between words.
    """

    title: str
    rank: int = 0
    is_elastic: bool = False


@dataclass(frozen=True)
class Group:
    """Lines of a table below a heading; an empty heading is left out."""

    heading: str
    rows: Sequence[Sequence[str]]


class Screen:
    """Standard output: colours and a width where it is a terminal, all columns where it is not.

    ``NO_COLOR`` takes every colour and weight away, and ``COLUMNS`` gives a width to what is no
    terminal.
    """

    def __init__(self) -> None:
        self.console = Console(
            color_system=None if os.environ.get("NO_COLOR") else "auto",
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )
        is_told = os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty()
        self.width = shutil.get_terminal_size().columns if is_told else UNLIMITED

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line."""
        self.console.print(Text(text, style), soft_wrap=True)

    def paragraph(self, text: str, indent: str = "") -> None:
        """Print text, broken between words."""
        for line in wrapped(text, min(self.width, 100) - len(indent)):
            self.line(f"{indent}{line}")

    def table(self, columns: Sequence[Column], groups: Sequence[Group]) -> list[str]:
        """Print a table; return the titles of the columns for which there was no room.

        Args:
            columns: the columns.
            groups: the rows, a text for each column.
        """
        rows = [row for group in groups for row in group.rows]
        widths = [
            max([len(column.title), *(len(row[i]) for row in rows)])
            for i, column in enumerate(columns)
        ]
        chosen = _that_fit(columns, widths, self.width)
        self.line(_line([columns[i].title for i in chosen], [widths[i] for i in chosen]), "dim")
        for group in groups:
            if group.heading and group.rows:
                self.line()
                self.line(group.heading, "bold")
            for row in group.rows:
                cells = [_shortened(row[i], widths[i]) for i in chosen]
                self.line(_line(cells, [widths[i] for i in chosen]))
        return [column.title for i, column in enumerate(columns) if i not in chosen]

    def definitions(self, pairs: Iterable[tuple[str, str]], indent: str = "") -> None:
        """Print names and what they stand for, which may take several lines."""
        listed = [(name, text) for name, text in pairs if text]
        room = max((len(name) for name, _ in listed), default=0) + GAP
        for name, text in listed:
            first, *others = wrapped(text, min(self.width, 100) - room - len(indent))
            self.line(f"{indent}{name:{room}}{first}")
            for line in others:
                self.line(f"{indent}{'':{room}}{line}")


def _that_fit(columns: Sequence[Column], widths: list[int], room: int) -> list[int]:
    """Return the columns that are shown; an elastic one gets the room that is left.

    Args:
        columns: the columns.
        widths: how wide they are; that of an elastic one changes.
        room: how wide the screen is.
    """
    chosen: list[int] = []
    used = -GAP
    for index in sorted(range(len(columns)), key=lambda i: columns[i].rank):
        left = room - used - GAP
        if columns[index].is_elastic and left >= LEAST_ROOM:
            widths[index] = min(widths[index], left)
        if widths[index] <= left or not chosen:
            chosen.append(index)
            used += GAP + widths[index]
    return sorted(chosen)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line of a table."""
    padded = [f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)]
    return (" " * GAP).join(padded).rstrip()


def _shortened(text: str, width: int) -> str:
    """Return text without the words that have no room."""
    if len(text) <= width:
        return text
    return textwrap.shorten(text, width, placeholder=f" {MORE}")


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; words, and what has hyphens, stay whole."""
    lines = textwrap.wrap(
        text, max(width, LEAST_ROOM), break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]
