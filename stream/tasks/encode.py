"""From texts to token ids, with the encoder's own tokenizer; once, then from a memory map."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stream.errors import UserError, first_line
from stream.tasks.task import Rows, Split

CHUNK = 4096  # keeps the tokenizer's threads busy, and memory small
FORMAT = 1  # raised when the files of the cache change


class TextEncoder:
    """The tokenizer of a backbone, and the cache of what it encoded.

    Pairs are cut at the end of the longer text first.

    Attributes:
        encoded: rows that were encoded instead of read from the cache.
    """

    def __init__(
        self, location: str | Path, max_length: int, cache: Path, *, revision: str | None = None
    ):
        """Load the tokenizer from a folder or from the hub.

        Raises:
            UserError: no tokenizer there, or a slow one without a Rust twin.
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
        key = f"{FORMAT} {max_length} {self._tokenizer.to_str()}"
        self._key = hashlib.sha256(key.encode()).hexdigest()
        self._cache = cache / "encoded"
        self.encoded = 0

    def encode(self, rows: Rows, rows_hash: str) -> Split:
        """Encode one split, or map it from the cache; keeps the order of its rows.

        The key is (hash of the rows, hash of the tokenizer, maximum length). Files are written
        beside their place and renamed, so several runs may do this at once.
        """
        folder = self._cache / hashlib.sha256(f"{rows_hash} {self._key}".encode()).hexdigest()
        if not (folder / "facts.json").is_file():
            self._write(folder, rows)
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r")
            for name in ("token_ids", "offsets", "first_lengths")
        }
        facts = json.loads((folder / "facts.json").read_text())
        is_class = rows.labels.dtype == np.int64
        labels = rows.labels if is_class else rows.labels.astype(np.float32)
        return Split(**arrays, labels=labels, truncated=facts["truncated"])

    def encode_now(self, texts: Sequence[tuple[str, ...]]) -> Split:
        """Encode texts without labels (all 0), and without the cache."""
        rows = Rows(tuple(texts), np.zeros(len(texts), np.int64))
        arrays, truncated = self._encode(rows)
        return Split(**arrays, labels=rows.labels, truncated=truncated)

    def _write(self, folder: Path, rows: Rows) -> None:
        """Encode and write one split, whole or not at all."""
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
            shutil.rmtree(temporary)  # another run was faster; its files are the same

    def _encode(self, rows: Rows) -> tuple[dict[str, np.ndarray], int]:
        """Return the arrays of a `Split`, and how many rows were cut."""
        ids: list[np.ndarray] = []
        lengths = np.empty(len(rows), np.int64)
        first_lengths = np.empty(len(rows), np.int32)
        truncated = 0
        for start in range(0, len(rows), CHUNK):
            texts = rows.texts[start : start + CHUNK]
            single = len(texts[0]) == 1
            batch = self._tokenizer.encode_batch([row[0] if single else row for row in texts])
            rows_ids = [encoding.ids for encoding in batch]
            stop = start + len(batch)
            lengths[start:stop] = [len(row) for row in rows_ids]
            ids.append(
                np.fromiter(chain.from_iterable(rows_ids), np.int32, sum(map(len, rows_ids)))
            )
            seconds = 0 if single else np.array([sum(encoding.type_ids) for encoding in batch])
            first_lengths[start:stop] = lengths[start:stop] - seconds
            truncated += sum(bool(encoding.overflowing) for encoding in batch)
        self.encoded += len(rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        arrays = {
            "token_ids": np.concatenate(ids),
            "offsets": offsets,
            "first_lengths": first_lengths,
        }
        return arrays, truncated
