"""What a task is: raw rows as a source gives them, and the encoded task that learners see."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stream.config.task import TaskSpec
from stream.data.identity import text_key
from stream.data.spans.answers import Answers
from stream.data.table import Account
from stream.errors import unknown


@dataclass(frozen=True)
class Rows:
    """One split as text: a tuple of one or two texts a row, and the labels.

    Labels are class indices (int64 [N]), scores (float64 [N]), or the answers of each row (objects
    [N]: tuples of a text and its first character in the second text).
    """

    texts: tuple[tuple[str, ...], ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def keys(self) -> np.ndarray:
        """What identifies each row's texts whatever their case and blanks, uint64 [N]."""
        return np.array([text_key(texts) for texts in self.texts], np.uint64)

    def take(self, indices: np.ndarray) -> "Rows":
        """Return the rows at ``indices``, in that order."""
        taken = Rows(tuple(self.texts[i] for i in indices), self.labels[indices])
        if "keys" in self.__dict__:  # computed once a row, however often rows are taken
            taken.__dict__["keys"] = self.keys[indices]
        return taken

    def digest(self) -> str:
        """Return the SHA-256 of texts and labels in order."""
        state = hashlib.sha256()
        for texts, label in zip(self.texts, self.labels.tolist(), strict=True):
            state.update(json.dumps([texts, label]).encode())
            state.update(b"\n")
        return state.hexdigest()


@dataclass(frozen=True)
class Split:
    """One split as token ids, all rows in one flat array.

    Attributes:
        token_ids: int32 [total tokens], special tokens included.
        offsets: int64 [N + 1]; row i is ``token_ids[offsets[i]:offsets[i + 1]]``.
        first_lengths: int32 [N]; tokens before the second text of a pair, where the encoder tells
            the two apart by token type; else the whole row's length.
        labels: int64 [N] class indices, float32 [N] scores, or spans, int64 [N, 4]: first and last
            token of the answer, first token of the context and the one behind its last.
        truncated: rows cut to the maximum length.
        answers: what spans are judged by; None for classes and scores.
    """

    token_ids: np.ndarray
    offsets: np.ndarray
    first_lengths: np.ndarray
    labels: np.ndarray
    truncated: int = 0
    answers: Answers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 [N]."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Tokens of some rows, int64 [len(rows)]."""
        return self.offsets[rows + 1] - self.offsets[rows]

    @property
    def targets(self) -> np.ndarray | Answers:
        """What predictions are judged by: the labels, or the answers of spans."""
        return self.labels if self.answers is None else self.answers

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are learned from: token ids, lengths and labels."""
        arrays = (self.token_ids, self.offsets, self.first_lengths, self.labels)
        return sum(array.nbytes for array in arrays)

    def take(self, indices: np.ndarray) -> "Split":
        """Return a copy of the rows at ``indices``, in that order."""
        rows = [self.token_ids[self.offsets[i] : self.offsets[i + 1]] for i in indices]
        ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        tokens = np.concatenate(rows) if rows else np.empty(0, np.int32)
        answers = None if self.answers is None else self.answers.take(indices)
        firsts, labels = self.first_lengths[indices], self.labels[indices]
        return Split(tokens, ends, firsts, labels, answers=answers)


@dataclass(frozen=True)
class Task:
    """A task ready to be learned: its specification, encoded splits and the hashes of its rows."""

    name: str
    spec: TaskSpec
    splits: Mapping[str, Split]
    hashes: Mapping[str, str]
    accounts: Mapping[str, Account] = field(default_factory=dict)

    @property
    def num_outputs(self) -> int:
        """Width K of the task's head."""
        return self.spec.num_outputs

    @property
    def is_regression(self) -> bool:
        """Whether labels are scores instead of classes."""
        return self.spec.target == "score"

    @property
    def is_span(self) -> bool:
        """Whether labels are spans of tokens instead of classes."""
        return self.spec.target == "span"

    def split(self, name: str) -> Split:
        """Return a split by name."""
        if name not in self.splits:
            raise unknown("split", name, self.splits)
        return self.splits[name]
