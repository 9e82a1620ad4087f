"""From texts to token ids with the encoder's own tokenizer, and the cache of the results."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stream.data.layout import Layout
from stream.data.marks import ensure_marks
from stream.data.spans.tokens import span_arrays, span_split
from stream.data.task import Rows, Split
from stream.data.truncation import Truncated
from stream.errors import UserError, first_line, require
from stream.files.concurrent import folder_at_once

CHUNK_ROWS = 4096  # enough to keep the tokenizer's threads busy, few enough to save memory
CHUNK_CHARACTERS = 4_000_000  # rows of long texts are encoded whole, so fewer of them at once
FORMAT = 1  # part of the cache key; raise it when the files of the cache change


class TextEncoder:
    """The tokenizer of a backbone, with a cache on disk.

    A row that is too long loses tokens at the end of its longest text first; in a span task only
    the context is cut. What the tokenizer's own files say about padding, truncation and the
    longest input has no effect: ``max_length`` is what counts. Every text ends in a special token,
    which also divides the texts of a pair (`stream.data.marks`).

    Attributes:
        leading: how many special tokens stand in front of a text, such as 1 for [CLS] and 0 in T5.
        pad_id: the id of the padding token, which is always masked. If the tokenizer has none, the
            token at the end of a text serves as padding.
        vocabulary_size: how many rows an embedding table must have for every token to find its own.
        key: a hash of all that decides the tokens of a text.
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
            UserError: there is no tokenizer, only a slow one (not written in Rust), or one that
                does not mark where texts end and names no token that could.
        """
        state = _state(location)
        read = _read if state is None else _remembered
        loaded = read(location, revision, max_length, state)
        self._tokenizer = loaded.tokenizer
        self.leading, self.pad_id = loaded.leading, loaded.pad_id
        self.vocabulary_size, self.key = loaded.vocabulary_size, loaded.key
        self._max_length = max_length
        self._cache = cache / "encoded"
        self.encoded = 0

    def encode(self, rows: Rows, rows_hash: str, layout: Layout | None = None) -> Split:
        """Return one split encoded, from the cache if it is there; rows keep their order.

        The cache key is (hash of the rows, hash of the tokenizer, maximum length, layout if there
        is one: with None each text of a row is a segment as it is). Files are written to a
        temporary folder that is then renamed, so several runs can do this at once. The arrays are
        memory maps.
        """
        key = " ".join([rows_hash, self.key, *([layout.key] if layout else [])])
        folder = self._cache / hashlib.sha256(key.encode()).hexdigest()
        if not (folder / "facts.json").is_file():
            self._write(folder, rows, layout)
        arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
        facts = json.loads((folder / "facts.json").read_text())
        return _split(rows, arrays, facts["truncated"])

    def encode_now(
        self,
        texts: Sequence[tuple[str, ...]],
        layout: Layout | None = None,
        *,
        spans: bool = False,
    ) -> Split:
        """Encode texts that have no labels, without the cache; labels are 0, answers are empty."""
        labels = np.fromiter([()] * len(texts), object) if spans else np.zeros(len(texts), np.int64)
        rows = Rows(tuple(texts), labels)
        return _split(rows, *self._encode(rows, layout))

    def _write(self, folder: Path, rows: Rows, layout: Layout | None) -> None:
        """Encode one split and write it to the cache, completely or not at all."""
        arrays, truncated = self._encode(rows, layout)
        with folder_at_once(folder) as temporary:
            for name, array in arrays.items():
                np.save(temporary / f"{name}.npy", array)
            (temporary / "facts.json").write_text(json.dumps({"truncated": truncated}))

    def _encode(self, rows: Rows, layout: Layout | None) -> tuple[dict[str, np.ndarray], int]:
        """Return the arrays of the token cache by name, and how many rows were cut."""
        has_spans = rows.labels.dtype == object
        chunks, truncated = list[dict[str, np.ndarray]](), 0
        for part in _chunks(rows.texts):
            texts = rows.texts[part]
            segments = [layout.segments(row) for row in texts] if layout else texts
            whole = self._tokenizer.encode_batch([r[0] if len(r) == 1 else r for r in segments])
            batch = self._cut(texts, whole, layout, only_second=has_spans)
            spans = span_arrays(batch, rows.labels[part]) if has_spans else {}
            chunks.append(_token_arrays(batch, single=len(segments[0]) == 1) | spans)
            truncated += sum(row.is_cut for row in batch)
        self.encoded += len(rows)
        arrays = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
        offsets = np.concatenate([[0], np.cumsum(arrays.pop("lengths"))]).astype(np.int64)
        return {**arrays, "offsets": offsets}, truncated

    def _cut(
        self,
        texts: Sequence[tuple[str, ...]],
        whole: Sequence[Any],
        layout: Layout | None,
        *,
        only_second: bool,
    ) -> list[Truncated]:
        """Cut rows that the tokenizer encoded.

        Raises:
            UserError: a question leaves no room for its context, or a segment's words for texts.
        """
        length = self._max_length
        batch = [
            Truncated(
                encoding,
                length,
                only_second=only_second,
                owners=partial(layout.owners, row) if layout else None,
            )
            for row, encoding in zip(texts, whole, strict=True)
        ]
        crowded = [row[0] for row, cut in zip(texts, batch, strict=True) if not cut.has_room]
        what = "a question leaves no room for its context"
        if not only_second:
            what = "the words of a task's segments leave no room for its texts"
        require(
            not crowded,
            f"{what} in {length} tokens; raise backbone.max_length. The longest: "
            f"{max(crowded, key=len, default='')[:200]!r}",
        )
        return batch


@dataclass(frozen=True)
class _Loaded:
    """What the files of a tokenizer give; nothing changes it. See `TextEncoder`."""

    tokenizer: Any
    leading: int
    pad_id: int
    vocabulary_size: int
    key: str


def _state(location: str | Path) -> object:
    """Return what changes when a file in a folder does; None for what is on the hub."""
    folder = Path(location)
    if not folder.is_dir():
        return None
    files = sorted((path.name, path.stat()) for path in folder.iterdir())
    return tuple((name, s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size) for name, s in files)


def _read(
    location: str | Path, revision: str | None, max_length: int, state: object = None
) -> _Loaded:
    """Load a tokenizer.

    Args:
        location: a folder, or an id on the hub.
        revision: the revision on the hub; None is the main branch.
        max_length: the largest number of tokens per text or pair, a part of the key.
        state: that of the folder, for `_remembered`.

    Raises:
        UserError: as `TextEncoder`.
    """
    del state
    loaded = _load(location, revision)
    tokenizer = loaded.backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    _check_repeats(tokenizer, location)
    marks = ensure_marks(tokenizer, loaded.eos_token_id, location)
    key = f"{FORMAT} {max_length} {tokenizer.to_str()}"
    return _Loaded(
        tokenizer,
        marks.leading,
        marks.end if loaded.pad_token_id is None else int(loaded.pad_token_id),
        max(len(loaded), *(n + 1 for n in loaded.added_tokens_decoder)),
        hashlib.sha256(key.encode()).hexdigest(),
    )


# Jobs of a sweep, and a run that is served after it was learned, ask for the same again.
_remembered = lru_cache(maxsize=2)(_read)


def _load(location: str | Path, revision: str | None) -> Any:
    """Return a fast tokenizer as transformers loads it."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            location, revision=revision, trust_remote_code=False
        )
        special = len(set(tokenizer.all_special_tokens))
        only_special = tokenizer.backend_tokenizer.get_vocab_size() <= special
    except Exception as error:  # the library written in Rust raises plain Exception
        reason = f"{type(error).__name__}: {first_line(error)}"
        if "tiktoken" in reason and find_spec("sentencepiece") is None:  # tried last, in vain
            reason = (
                "its files are those of SentencePiece, whose package is not installed: "
                "pip install 'task-stream-simulator[sentencepiece]'"
            )
        raise UserError(f"no tokenizer in {location}: {reason}") from error
    require(
        not only_special,  # what transformers makes of a folder that has a config.json alone
        f"no tokenizer in {location}: its vocabulary has special tokens only; save the tokenizer's "
        "files (such as tokenizer.json) there",
    )
    return tokenizer


def _check_repeats(tokenizer: Any, location: str | Path) -> None:
    """Raise UserError if the tokenizer gives a text other tokens each time."""
    dropout = getattr(tokenizer.model, "dropout", None)
    require(
        not dropout,
        f"the tokenizer in {location} has dropout={dropout}, which gives a text other tokens each "
        "time; remove it from tokenizer.json",
    )


def _chunks(texts: Sequence[tuple[str, ...]]) -> Iterator[slice]:
    """Yield slices of rows that are encoded together: neither many rows nor many characters."""
    start = characters = 0
    for index, row in enumerate(texts):
        characters += sum(map(len, row))
        if index > start and (index == start + CHUNK_ROWS or characters > CHUNK_CHARACTERS):
            yield slice(start, index)
            start, characters = index, sum(map(len, row))
    yield slice(start, len(texts))


def _token_arrays(batch: Sequence[Truncated], *, single: bool) -> dict[str, np.ndarray]:
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
