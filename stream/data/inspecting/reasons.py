"""Why a column is no text, or no label: in words, for the column that was expected."""

from collections.abc import Iterator

from stream.data.inspecting.column_names import (
    NEVER,
    NO_NAME,
    has_score_name,
    label_rank,
    text_rank,
)
from stream.data.inspecting.columns import Column
from stream.data.inspecting.several import has_decimal_commas, separator
from stream.formatting import count, visible

MAX_LABELS = 200  # a column with more different values, and of few rows each, is no label
ROWS_OF_LABEL = 50  # on average, of each of more than `MAX_LABELS`
FEW_ROWS = 20  # in which almost every row may have another label
LONG_LABEL = 60  # characters on average, above which a column without a label's name has none
NO_LABEL_SHAPES = ("lists or objects", "dates", "addresses", "HTML", "parse trees", "bytes")


def why_no_text(column: Column) -> str:
    """Return why a column is no text; ``""`` if it may be one."""
    if not column.is_prose:
        is_one = len(column.counts) == 1
        return "has one value in all rows" if is_one else f"holds {column.shape}"
    if column.is_mostly_blank:
        return f"is blank in {column.blank:,} of {column.rows + column.blank:,} rows"
    is_few = column.has_few_values and text_rank(column.name) > 0
    return f"has {len(column.counts)} different values" if is_few else ""


def why_no_label(column: Column) -> str:
    """Return why a column is no label; ``""`` if it may be one."""
    return next(_faults(column), "")


def _faults(column: Column) -> Iterator[str]:
    """Yield what is wrong with a column as a label."""
    distinct, rank = len(column.counts), label_rank(column.name)
    if distinct < 2:
        yield f"has {count(distinct, 'different value')}, and a task needs two labels"
    if rank == NEVER or column.shape in NO_LABEL_SHAPES:
        yield f"holds {column.shape}"
    if has_decimal_commas(column):
        yield "holds numbers with decimal commas; write them with points"
    if several := why_several(column):
        yield several
    may_be_scores = not column.are_whole or has_score_name(column.name)
    if rank <= 2 and column.are_mostly_numbers and may_be_scores:
        return
    if not (_fits_a_name(column) if rank < 2 else _fits_no_name(column)):
        hint = "; --target score makes them scores" if column.are_numbers else ""
        yield f"has {distinct:,} different values, too many for classes{hint}"


def _fits_a_name(column: Column) -> bool:
    """Return whether a column with a label's name has so few values that these are classes."""
    distinct, rows = len(column.counts), column.rows
    is_repeated = rows < FEW_ROWS or 3 * distinct <= 2 * rows
    return is_repeated and distinct <= max(MAX_LABELS, rows // ROWS_OF_LABEL)


def _fits_no_name(column: Column) -> bool:
    """Return whether a column looks like a label although its name says little."""
    is_text = text_rank(column.name) == 0 and column.is_prose
    is_few = len(column.counts) <= min(MAX_LABELS, max(column.rows // 2, 2))
    is_named = label_rank(column.name) < NO_NAME
    are_fractions = column.are_numbers and not column.are_whole
    is_other = is_text or are_fractions or column.mean_length > LONG_LABEL
    return is_few and not is_other and (is_named or not column.is_mostly_blank)


def why_several(column: Column) -> str:
    """Return in what way a column holds several labels a row; ``""`` if it does not."""
    rank, sample = label_rank(column.name), visible(column.example, 40)
    if column.shape == "lists or objects":
        return (
            f"holds lists or objects, such as {sample}: several labels per row? A task has one; "
            "give each label a column of 0 and 1, and name that with --label"
        )
    may_be = rank < NO_NAME or (
        rank == NO_NAME and 2 * len(column.counts) <= column.rows and not column.are_numbers
    )
    mark = separator(column) if may_be and column.mean_length <= LONG_LABEL else None
    if mark is None:
        return ""
    sample = visible(next(text for text in column.counts if mark in text), 40)
    return (
        f"holds several labels per row, joined by {mark!r}, such as {sample!r}; a task has one: "
        f"--label {column.name} takes each combination as a class"
    )


def is_worth_saying(column: Column) -> bool:
    """Return whether it should be said why a column is no label."""
    return (
        label_rank(column.name) < NO_NAME or bool(separator(column)) or has_decimal_commas(column)
    )
