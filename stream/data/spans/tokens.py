"""Span tasks: a question, and a context that contains its answer (the form of SQuAD v1.1).

Question and context are encoded as a pair of at most ``backbone.max_length`` tokens. Only the
context is cut, and there is one window: text after it is not seen. A row whose first answer is not
completely inside the window is kept. In training both ends of its span are then [CLS]; in scoring
it is compared with all its answers, as any other row. So a short window lowers the score.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stream.data.spans.answers import Answers
from stream.data.table import SourceTable
from stream.data.task import Rows, Split
from stream.data.truncation import Truncated

Answer = tuple[str, int]  # a text, and its first character in the context


def unpacked(source: SourceTable) -> pa.Table:
    """Return the source's table with nested values as columns.

    Columns of JSON texts become lists or objects, and each field of an object becomes a column
    ``object.field``.
    """
    table = source.table
    for name in filter(None, source.provenance.get("json_text", "").split(", ")):
        texts = table.column(name).to_pylist()
        values = [None if text is None else json.loads(text) for text in texts]
        try:
            column = pa.array(values)
        except pa.ArrowException:  # mixed types, so no answers; an error where answers are read
            continue
        table = table.set_column(table.column_names.index(name), name, column)
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def answers_in(context: str, texts: Any, starts: Any) -> tuple[Answer, ...] | None:
    """Return the answers of one row, or None if one is not at its place in the context.

    >>> answers_in("Ann met Bob.", ["Bob"], [8])
    (('Bob', 8),)

    Args:
        context: the text that contains the answers.
        texts: the answer's text, or a list of them.
        starts: the first character of the answer in the context, or a list of them.
    """
    texts = [texts] if isinstance(texts, str) else texts or []
    starts = [starts] if isinstance(starts, int) else starts or []
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return None
    for text, start in zip(texts, starts, strict=True):
        is_answer = isinstance(text, str) and type(start) is int and start >= 0 and text.strip()
        if not is_answer or not context.startswith(text, start):
            return None
    return tuple(zip(texts, starts, strict=True))


def token_span(encoding: Truncated, answers: Sequence[Answer]) -> tuple[int, int, int, int]:
    """Return where the first answer and the context are among the tokens of an example.

    Args:
        encoding: the encoded pair.
        answers: the answers of the row.

    Returns:
        The first and last token of the first answer; the context's first token and the one after
        its last. The answer is (0, 0), which is [CLS], if there is none or if it was cut.
    """
    texts = encoding.sequence_ids
    if 1 not in texts:
        return 0, 0, 0, 0
    first, stop = texts.index(1), len(texts) - texts[::-1].index(1)
    if not answers:
        return 0, 0, first, stop
    text, start = answers[0]
    start += len(text) - len(text.lstrip())
    end = start + len(text.strip())
    char_spans = np.array(encoding.offsets[first:stop])
    overlapping = np.flatnonzero((char_spans[:, 0] < end) & (char_spans[:, 1] > start))
    is_cut = encoding.is_cut and end > char_spans[-1, 1]
    if is_cut or not len(overlapping):
        return 0, 0, first, stop
    return first + int(overlapping[0]), first + int(overlapping[-1]), first, stop


def span_arrays(batch: Sequence[Truncated], answers: np.ndarray) -> dict[str, np.ndarray]:
    """Return the labels of some examples, as in `Split`, and the character spans of their tokens.

    The names are those of the files in the token cache; ``places`` are the character spans.
    """
    spans = [token_span(encoding, of_row) for encoding, of_row in zip(batch, answers, strict=True)]
    char_spans = [np.array(encoding.offsets, np.int32) for encoding in batch]
    return {"labels": np.array(spans, np.int64), "places": np.concatenate(char_spans)}


def span_split(
    rows: Rows, *, labels: np.ndarray, places: np.ndarray, offsets: np.ndarray, **arrays: Any
) -> Split:
    """Return the encoded rows of a span task, with what is needed to score them.

    Args:
        rows: the rows as text.
        labels: spans, int64 [N, 4], as in `Split`.
        places: the character span of each token, int32 [tokens of all examples, 2].
        offsets: where examples begin, int64 [N + 1], as in `Split`.
        arrays: the other attributes of `Split`.
    """
    answers = Answers(
        tuple(context for _, context in rows.texts),
        tuple(tuple(text for text, _ in answers) for answers in rows.labels),
        places,
        offsets[:-1],
        labels[:, 2:],
    )
    return Split(offsets=offsets, labels=labels, answers=answers, **arrays)
