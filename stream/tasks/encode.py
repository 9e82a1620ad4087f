"""From texts to token ids, with the encoder's own tokenizer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stream.errors import UserError
from stream.tasks.task import Rows, Split

CHUNK = 1024


class TextEncoder:
    """The tokenizer of a backbone; pairs are cut at the end of the longer text first."""

    def __init__(self, location: str | Path, max_length: int, *, revision: str | None = None):
        """Load the tokenizer from a folder or from the hub.

        Raises:
            UserError: no tokenizer there.
        """
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(location, revision=revision)
        except (OSError, ValueError) as error:
            raise UserError(f"no tokenizer in {location}: {_first_line(error)}") from error
        self.max_length = max_length

    @property
    def pad_id(self) -> int:
        """Token id of padding."""
        return int(self._tokenizer.pad_token_id)

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return len(self._tokenizer)

    def encode(self, rows: Rows) -> Split:
        """Encode one split; keeps the order of its rows."""
        lengths: list[int] = []
        first_lengths: list[int] = []
        chunks: list[np.ndarray] = []
        truncated = 0
        for texts in _chunks(rows.texts):
            columns = [list(column) for column in zip(*texts, strict=True)]
            encoded = self._tokenizer(
                *columns,
                truncation="longest_first",
                max_length=self.max_length,
                return_attention_mask=False,
            )
            truncated += sum(bool(one.overflowing) for one in encoded.encodings)
            ids = encoded["input_ids"]
            types = encoded.get("token_type_ids") or [[0] * len(row) for row in ids]
            lengths.extend(len(row) for row in ids)
            first_lengths.extend(len(row) - sum(row) for row in types)
            chunks.append(np.fromiter((i for row in ids for i in row), np.int32))
        return Split(
            token_ids=np.concatenate(chunks),
            offsets=np.cumsum([0, *lengths], dtype=np.int64),
            first_lengths=np.array(first_lengths, np.int32),
            labels=rows.labels if rows.labels.dtype == np.int64 else rows.labels.astype(np.float32),
            truncated=truncated,
        )


def _chunks(texts: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Cut the rows into chunks that keep the tokenizer busy and its memory small."""
    for start in range(0, len(texts), CHUNK):
        yield texts[start : start + CHUNK]


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
