"""A table of text, and how it looks on a screen, in Markdown and in LaTeX."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stream.formatting import DASH, MINUS, TIMES

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
    """TokenBatch of one line: what it is about, then its values; a mean is bold, a loud one red."""

    names: Sequence[str]
    values: Sequence[str]
    is_mean: bool = False
    is_loud: bool = False

    @property
    def cells(self) -> list[str]:
        """All texts of the line."""
        return [*self.names, *self.values]


@dataclass(frozen=True)
class Sheet:
    """A table: a title, one header a column (lines parted by newlines), sections, notes below.

    Attributes:
        num_names: how many columns at the left say what a line is about.
    """

    title: str
    header: Sequence[str]
    num_names: int
    sections: Sequence[Sequence[Row]]
    notes: Sequence[str] = field(default_factory=tuple)


def rich_table(sheet: Sheet, columns: Sequence[int] | None = None) -> Table:
    """The table for a screen, with all columns of values or those of the given numbers."""
    title = Text(sheet.title, style="bold")
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    values = sheet.header[sheet.num_names :]
    columns = range(len(values)) if columns is None else columns
    for name in sheet.header[: sheet.num_names]:
        table.add_column(name, vertical="bottom", overflow="fold")
    for column in columns:
        table.add_column(values[column], justify="right", vertical="bottom", overflow="fold")
    for section in sheet.sections:
        for row in section:
            style = "bold" if row.is_mean else ""
            cells = [Text(cell, style=style) for cell in row.names]
            for column in columns:
                last = column == len(values) - 1
                loud = "bold red" if row.is_loud and last else style
                cells.append(Text(row.values[column], style=loud))
            table.add_row(*cells)
        table.add_section()
    return table


def show(sheet: Sheet) -> None:
    """Print a table, on a narrow screen in several parts; never cut in a file or pipe."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)
    wide = console.options.update(width=10_000)
    parts: list[list[int]] = [[]]
    for column in range(len(sheet.header) - sheet.num_names):
        table = rich_table(sheet, [*parts[-1], column])
        if parts[-1] and table.__rich_measure__(console, wide).maximum > console.width:
            parts.append([])
        parts[-1].append(column)
    for part in parts:
        console.print(rich_table(sheet, part))
    for note in sheet.notes:
        console.print(Text(note))


def markdown(sheet: Sheet) -> str:
    """A GitHub Flavored Markdown table, its title before and its notes after it."""
    aligned = ["---"] * sheet.num_names
    aligned += ["---:"] * (len(sheet.header) - sheet.num_names)
    lines = [f"**{_escaped(sheet.title)}**", ""]
    lines += [_markdown_line(map(_escaped, sheet.header)), _markdown_line(aligned)]
    for section in sheet.sections:
        for row in section:
            cells = map(_escaped, row.cells)
            bold = (f"**{cell}**" if row.is_mean and cell else cell for cell in cells)
            lines.append(_markdown_line(bold))
    for note in sheet.notes:
        lines += ["", _escaped(note)]
    return "\n".join(lines) + "\n"


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return one_line(text).translate(_MARKDOWN)


def one_line(text: str) -> str:
    """Text without line breaks; a word that was parted by one is whole again."""
    return " ".join(text.replace("-\n", "").split())


def latex(sheet: Sheet) -> str:
    """A LaTeX table with its title as caption and its notes below; needs the booktabs package."""
    columns = "l" * sheet.num_names + "r" * (len(sheet.header) - sheet.num_names)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(sheet.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_line(sheet.header)]
    for section in sheet.sections:
        lines.append(r"\midrule")
        for row in section:
            line = _latex_line(row.cells, command=r"\textbf" if row.is_mean else "")
            lines.append(line)
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip {latex_text(note)}" for note in sheet.notes]
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
