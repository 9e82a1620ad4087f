"""A table of text, and how it looks on a screen, in Markdown and in LaTeX."""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stream.formatting import DASH, MINUS, TIMES

WIDTH = 100  # columns in a file or pipe, unless COLUMNS says otherwise

# ASCII punctuation that means something inside a cell; CommonMark 0.31, section 2.4.
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|~&$"})
_LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "[": "{[}",  # after a line break \\ a bracket would be its argument
        "]": "{]}",
        DASH: "--",
        MINUS: "$-$",
        TIMES: r"$\times$",
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Row:
    """One line: the names of what it is about, then values; a mean is bold, a loud one red.

    A floor is what no run has to be compared with in every column.
    """

    names: Sequence[str]
    values: Sequence[str]
    is_mean: bool = False
    is_floor: bool = False
    is_loud: bool = False

    @property
    def cells(self) -> list[str]:
        """All texts of the line."""
        return [*self.names, *self.values]


@dataclass(frozen=True)
class TextTable:
    """A table of text.

    Attributes:
        title: stands above it.
        header: one per column; newlines part its lines.
        num_names: how many columns at the left say what a line is about.
        sections: groups of rows, with a rule between them.
        notes: stand below it, one per line.
        above: lines between the title and the table.
    """

    title: str
    header: Sequence[str]
    num_names: int
    sections: Sequence[Sequence[Row]]
    notes: Sequence[str] = field(default_factory=tuple)
    above: Sequence[str] = field(default_factory=tuple)

    def without_columns(self, numbers: Collection[int], above: Sequence[str]) -> "TextTable":
        """The table without some columns, and with other lines above it."""
        names = self.num_names - sum(number < self.num_names for number in numbers)

        def kept(cells: Sequence[str]) -> list[str]:
            return [cell for number, cell in enumerate(cells) if number not in numbers]

        def reduced(row: Row) -> Row:
            cells = kept(row.cells)
            return replace(row, names=cells[:names], values=cells[names:])

        sections = [[reduced(row) for row in section] for section in self.sections]
        header = kept(self.header)
        return replace(self, header=header, num_names=names, sections=sections, above=above)


def rich_table(content: TextTable, columns: Sequence[int] | None = None) -> Table:
    """The table for a screen, with all columns of values or those of the given numbers."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    values = content.header[content.num_names :]
    columns = range(len(values)) if columns is None else columns
    for name in content.header[: content.num_names]:
        table.add_column(name, vertical="bottom", overflow="fold")
    for column in columns:
        table.add_column(values[column], justify="right", vertical="bottom", overflow="fold")
    for section in content.sections:
        for row in section:
            style = "bold red" if row.is_loud else "bold" if row.is_mean else ""
            cells = [*row.names, *(row.values[column] for column in columns)]
            table.add_row(*(Text(cell, style=style) for cell in cells))
        table.add_section()
    return table


def show(table: TextTable) -> None:
    """Print a table, in several parts where the screen, or `WIDTH`, is too narrow for one."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=WIDTH)
    console.print(Text(table.title, style="bold"))
    for line in table.above:
        console.print(Text(line))
    wide = console.options.update(width=10_000)
    parts: list[list[int]] = [[]]
    for column in range(len(table.header) - table.num_names):
        drawn = rich_table(table, [*parts[-1], column])
        if parts[-1] and drawn.__rich_measure__(console, wide).maximum > console.width:
            parts.append([])
        parts[-1].append(column)
    for part in parts:
        console.print(rich_table(table, part))
    for note in table.notes:
        console.print(Text(note))


def markdown(table: TextTable) -> str:
    """A GitHub Flavored Markdown table, its title before and its notes after it."""
    aligned = ["---"] * table.num_names
    aligned += ["---:"] * (len(table.header) - table.num_names)
    lines = [f"**{_escaped(table.title)}**", ""]
    for line in table.above:
        lines += [_escaped(line), ""]
    lines += [_markdown_line(map(_escaped, table.header)), _markdown_line(aligned)]
    for section in table.sections:
        for row in section:
            cells = map(_escaped, row.cells)
            bold = (f"**{cell}**" if row.is_mean and cell else cell for cell in cells)
            lines.append(_markdown_line(bold))
    for note in table.notes:
        lines += ["", _escaped(note)]
    return "\n".join(lines) + "\n"


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return one_line(text).translate(_MARKDOWN)


def one_line(text: str) -> str:
    """Text without line breaks; a word that was parted by one is whole again."""
    return " ".join(text.replace("-\n", "").split())


def latex(table: TextTable) -> str:
    """A LaTeX table with its title as caption and its notes below; needs the booktabs package."""
    caption = ". ".join([table.title, *table.above])
    columns = "l" * table.num_names + "r" * (len(table.header) - table.num_names)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_line(table.header)]
    for section in table.sections:
        lines.append(r"\midrule")
        for row in section:
            line = _latex_line(row.cells, command=r"\textbf" if row.is_mean else "")
            lines.append(line)
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip {latex_text(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_line(cells: Sequence[str], command: str = "") -> str:
    texts = (latex_text(cell) for cell in cells)
    return " & ".join(f"{command}{{{t}}}" if command and t else t for t in texts) + r" \\"


def latex_text(text: str) -> str:
    r"""Text in which every character stands for itself.

    >>> latex_text("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return one_line(text).translate(_LATEX)
