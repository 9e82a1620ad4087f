"""From texts to token ids with the encoder's own tokenizer, and the cache of the results."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stream.data.spans.tokens import span_arrays, span_split
from stream.data.task import Rows, Split
from stream.errors import UserError, first_line

CHUNK_ROWS = 4096  # enough to keep the tokenizer's threads busy, few enough to save memory
FORMAT = 1  # part of the cache key; raise it when the files of the cache change


class TextEncoder:
    """The tokenizer of a backbone, with a cache on disk.

    A pair that is too long loses tokens at the end of the longer text first; in a span task only
    the context is cut.

    Attributes:
        pad_id: the id of the padding token.
        vocabulary_size: the number of tokens that the tokenizer knows.
        encoded: how many rows were encoded rather than read from the cache.
    """

    def __init__(
        self, location: str | Path, max_length: int, cache: Path, *, revision: str | None = None
    ):
        """Load the tokenizer.

        Args:
            location: a folder, or an id on the hub.
            max_length: the largest number of tokens per text or pair.
            cache: the user's cache folder.
            revision: the revision on the hub; None is the main branch.

        Raises:
            UserError: there is no tokenizer, or only a slow one (not written in Rust).
        """
        from transformers import AutoTokenizer

        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(location, revision=revision)
            self._tokenizer = tokenizer.backend_tokenizer
        except (OSError, ValueError, AttributeError) as error:
            raise UserError(f"no tokenizer in {location}: {first_line(error)}") from error
        self.pad_id = int(tokenizer.pad_token_id)
        self.vocabulary_size = len(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length, strategy="longest_first")
        self._max_length = max_length
        key = f"{FORMAT} {max_length} {self._tokenizer.to_str()}"
        self._key = hashlib.sha256(key.encode()).hexdigest()
        self._cache = cache / "encoded"
        self.encoded = 0

    def encode(self, rows: Rows, rows_hash: str) -> Split:
        """Return one split encoded, from the cache if it is there; rows keep their order.

        The cache key is (hash of the rows, hash of the tokenizer, maximum length). Files are
        written to a temporary folder that is then renamed, so several runs can do this at once.
        The arrays are memory maps.
        """
        folder = self._cache / hashlib.sha256(f"{rows_hash} {self._key}".encode()).hexdigest()
        if not (folder / "facts.json").is_file():
            self._write(folder, rows)
        arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
        facts = json.loads((folder / "facts.json").read_text())
        return _split(rows, arrays, facts["truncated"])

    def encode_now(self, texts: Sequence[tuple[str, ...]], *, spans: bool = False) -> Split:
        """Encode texts that have no labels, without the cache; labels are 0, answers are empty."""
        labels = np.fromiter([()] * len(texts), object) if spans else np.zeros(len(texts), np.int64)
        rows = Rows(tuple(texts), labels)
        return _split(rows, *self._encode(rows))

    def _write(self, folder: Path, rows: Rows) -> None:
        """Encode one split and write it to the cache, completely or not at all."""
        arrays, truncated = self._encode(rows)
        self._cache.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=self._cache))
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array)
        (temporary / "facts.json").write_text(json.dumps({"truncated": truncated}))
        try:
            temporary.rename(folder)
        except OSError:
            if not (folder / "facts.json").is_file():
                raise
            shutil.rmtree(temporary)  # another run wrote the same files first

    def _encode(self, rows: Rows) -> tuple[dict[str, np.ndarray], int]:
        """Return the arrays of the token cache by name, and how many rows were cut."""
        has_spans = rows.labels.dtype == object
        strategy = "only_second" if has_spans else "longest_first"
        self._tokenizer.enable_truncation(self._max_length, strategy=strategy)
        chunks, truncated = list[dict[str, np.ndarray]](), 0
        for start in range(0, len(rows), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            batch = self._encode_batch(rows.texts[part])
            spans = span_arrays(batch, rows.labels[part]) if has_spans else {}
            chunks.append(_token_arrays(batch, single=len(rows.texts[0]) == 1) | spans)
            truncated += sum(bool(encoding.overflowing) for encoding in batch)
        self.encoded += len(rows)
        arrays = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
        offsets = np.concatenate([[0], np.cumsum(arrays.pop("lengths"))]).astype(np.int64)
        return {**arrays, "offsets": offsets}, truncated

    def _encode_batch(self, texts: Sequence[tuple[str, ...]]) -> list[Any]:
        """Encode some rows with the tokenizer.

        Raises:
            UserError: a question leaves no room for its context.
        """
        try:
            return self._tokenizer.encode_batch([row[0] if len(row) == 1 else row for row in texts])
        except Exception as error:  # the tokenizer raises plain Exception
            if "too short" not in str(error):
                raise
            longest = max((question for question, _ in texts), key=len)
            raise UserError(
                f"a question leaves no room for its context in {self._max_length} tokens; raise "
                f"backbone.max_length. The longest: {longest[:200]!r}"
            ) from error


def _token_arrays(batch: Sequence[Any], *, single: bool) -> dict[str, np.ndarray]:
    """Return the token ids of some rows in one flat array, and the lengths of the rows."""
    ids = [encoding.ids for encoding in batch]
    lengths = np.array([len(row) for row in ids], np.int64)
    seconds = 0 if single else np.array([sum(encoding.type_ids) for encoding in batch])
    return {
        "token_ids": np.fromiter(chain.from_iterable(ids), np.int32, int(lengths.sum())),
        "lengths": lengths,
        "first_lengths": (lengths - seconds).astype(np.int32),
    }


def _split(rows: Rows, arrays: dict[str, Any], truncated: int) -> Split:
    """Return the encoded rows with their labels."""
    if rows.labels.dtype == object:
        return span_split(rows, truncated=truncated, **arrays)
    is_class = rows.labels.dtype == np.int64
    labels = rows.labels if is_class else rows.labels.astype(np.float32)
    return Split(**arrays, labels=labels, truncated=truncated)
