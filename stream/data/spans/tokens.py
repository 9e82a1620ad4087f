"""Span tasks: a question, and a context in which its answer stands (SQuAD v1.1's form).

Question and context are encoded as a pair of at most ``backbone.max_length`` tokens. Only the
context is cut, and there is one window: what stands behind it is not seen. A row whose first
answer is not all inside stays: in training both ends of its span are [CLS], and in scoring it is
compared with all of its answers as any other row, so a short window costs score.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stream.data.spans.answers import Answers
from stream.data.table import SourceTable
from stream.data.task import Rows, Split

Answer = tuple[str, int]  # a text, and its first character in the context


def unpacked(source: SourceTable) -> pa.Table:
    """Return a table with JSON texts as lists, and the fields of objects as columns ``a.field``."""
    table = source.table
    for name in filter(None, source.provenance.get("json_text", "").split(", ")):
        texts = table.column(name).to_pylist()
        values = [None if text is None else json.loads(text) for text in texts]
        try:
            column = pa.array(values)
        except pa.ArrowException:  # of several types: no answers, and refused where it is read
            continue
        table = table.set_column(table.column_names.index(name), name, column)
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def answers_in(context: str, texts: Any, starts: Any) -> tuple[Answer, ...] | None:
    """Return a row's answers, one or a list; None unless each stands at its place in the context.

    >>> answers_in("Ann met Bob.", ["Bob"], [8])
    (('Bob', 8),)
    """
    texts = [texts] if isinstance(texts, str) else texts or []
    starts = [starts] if isinstance(starts, int) else starts or []
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return None
    for text, start in zip(texts, starts, strict=True):
        good = isinstance(text, str) and type(start) is int and start >= 0 and text.strip()
        if not good or not context.startswith(text, start):
            return None
    return tuple(zip(texts, starts, strict=True))


def token_span(encoding: Any, answers: Sequence[Answer]) -> tuple[int, int, int, int]:
    """Return the first and last token of a row's first answer, and where the context stands.

    Args:
        encoding: of the pair, from the fast tokenizer.
        answers: of the row; none and one that is cut give (0, 0), which is [CLS].

    Returns:
        First and last token of the answer; first token of the context, and the one behind its last.
    """
    texts: list[int | None] = encoding.sequence_ids
    if 1 not in texts:
        return 0, 0, 0, 0
    first, stop = texts.index(1), len(texts) - texts[::-1].index(1)
    if not answers:
        return 0, 0, first, stop
    text, start = answers[0]
    start += len(text) - len(text.lstrip())
    end = start + len(text.strip())
    places = np.array(encoding.offsets[first:stop])
    touched = np.flatnonzero((places[:, 0] < end) & (places[:, 1] > start))
    is_cut = bool(encoding.overflowing) and end > places[-1, 1]
    if is_cut or not len(touched):
        return 0, 0, first, stop
    return first + int(touched[0]), first + int(touched[-1]), first, stop


def span_arrays(batch: Sequence[Any], answers: np.ndarray) -> dict[str, np.ndarray]:
    """Return the labels of some rows, as `Split` has them, and the ``places`` of their tokens."""
    spans = [token_span(encoding, of_row) for encoding, of_row in zip(batch, answers, strict=True)]
    places = [np.array(encoding.offsets, np.int32) for encoding in batch]
    return {"labels": np.array(spans, np.int64), "places": np.concatenate(places)}


def span_split(
    rows: Rows, *, labels: np.ndarray, places: np.ndarray, offsets: np.ndarray, **arrays: Any
) -> Split:
    """Return the encoded rows of a span task, with what is needed to judge them."""
    answers = Answers(
        tuple(context for _, context in rows.texts),
        tuple(tuple(text for text, _ in answers) for answers in rows.labels),
        places,
        offsets[:-1],
        labels[:, 2:],
    )
    return Split(offsets=offsets, labels=labels, answers=answers, **arrays)
