"""The three forms of a task: rows of text, a loaded task, and the encoded task learners see.

"Rows" are raw data before encoding; "examples" are encoded ones. N is the number of rows (or
examples) of a split.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stream.config.task import TaskSpec
from stream.data.shared_classes import SharedClasses
from stream.data.spans.answers import Answers
from stream.data.table import Account
from stream.data.text_key import text_key
from stream.errors import unknown

SHARED_HEAD = "shared_head"
"""The name of the head that all tasks share, where they do."""


@dataclass(frozen=True)
class Rows:
    """One split as text.

    Attributes:
        texts: the text fields of each row, as many in every row.
        labels: class indices (int64 [N]), scores (float64 [N]), or the answers of each row
            (object [N]: tuples of an answer's text and its first character in the second text).
    """

    texts: tuple[tuple[str, ...], ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def keys(self) -> np.ndarray:
        """The `text_key` of each row, uint64 [N]; equal for texts that count as the same."""
        return np.array([text_key(texts) for texts in self.texts], np.uint64)

    def select(self, indices: np.ndarray) -> "Rows":
        """Return the rows at ``indices``, in that order."""
        selected = Rows(tuple(self.texts[i] for i in indices), self.labels[indices])
        if "keys" in self.__dict__:  # computed once per row, however often rows are selected
            selected.__dict__["keys"] = self.keys[indices]
        return selected

    def digest(self) -> str:
        """Return the SHA-256 of texts and labels in order."""
        state = hashlib.sha256()
        for texts, label in zip(self.texts, self.labels.tolist(), strict=True):
            state.update(json.dumps([texts, label]).encode())
            state.update(b"\n")
        return state.hexdigest()


@dataclass
class LoadedTask:
    """One task as text.

    Attributes:
        rows: the rows of each split.
        lines: the line of each row in its source, int64 [N], for each split.
        accounts: what became of the rows of the source, for each split.
    """

    rows: dict[str, Rows]
    lines: dict[str, np.ndarray]
    accounts: dict[str, Account]

    def drop_from_train(self, mask: np.ndarray, reason: str) -> None:
        """Drop the training rows where ``mask`` (bool [N]) is true, and account for them."""
        kept = np.flatnonzero(~mask)
        account = self.accounts["train"]
        account.drop(reason, self.lines["train"][mask].tolist())
        account.kept = len(kept)
        account.check()
        self.rows["train"] = self.rows["train"].select(kept)
        self.lines["train"] = self.lines["train"][kept]


@dataclass(frozen=True)
class Split:
    """One split as token ids; all examples lie in one flat array.

    Attributes:
        token_ids: int32 [total number of tokens], special tokens included.
        offsets: int64 [N + 1]; example i is ``token_ids[offsets[i]:offsets[i + 1]]``.
        first_lengths: int32 [N]; the number of tokens before the second of two segments if the
            encoder tells the two apart by token type, otherwise the example's length.
        labels: class indices (int64 [N]; of a task with a shared head, places among its classes),
            scores (float32 [N]), or spans (int64 [N, 4]): the first and last token of the answer,
            the context's first token and the one after its last.
        truncated: how many examples were cut to the maximum length.
        answers: what predicted spans are compared with; None for classes and scores.
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
        """The number of tokens of each example, int64 [N]."""
        return np.diff(self.offsets)

    def lengths_of(self, indices: np.ndarray) -> np.ndarray:
        """Return the number of tokens of the examples at ``indices``, int64 [len(indices)]."""
        return self.offsets[indices + 1] - self.offsets[indices]

    @property
    def targets(self) -> np.ndarray | Answers:
        """What predictions are compared with: the labels, or the answers of a span task."""
        return self.labels if self.answers is None else self.answers

    @property
    def nbytes(self) -> int:
        """The bytes of everything that is trained on: token ids, lengths and labels."""
        arrays = (self.token_ids, self.offsets, self.first_lengths, self.labels)
        return sum(array.nbytes for array in arrays)

    def select(self, indices: np.ndarray) -> "Split":
        """Return a copy of the examples at ``indices``, in that order."""
        examples = [self.token_ids[self.offsets[i] : self.offsets[i + 1]] for i in indices]
        ends = np.cumsum([0, *(len(example) for example in examples)], dtype=np.int64)
        tokens = np.concatenate(examples) if examples else np.empty(0, np.int32)
        answers = None if self.answers is None else self.answers.select(indices)
        first_lengths, labels = self.first_lengths[indices], self.labels[indices]
        return Split(tokens, ends, first_lengths, labels, answers=answers)


@dataclass(frozen=True)
class Task:
    """A task that is ready to be learned.

    Attributes:
        name: its name in the stream.
        spec: its specification.
        splits: the encoded splits by name.
        hashes: the SHA-256 of the rows of each split.
        accounts: what became of the rows of the source, for each split.
        shared: where its classes stand among those of the head that all tasks share; None for a
            head of its own.
    """

    name: str
    spec: TaskSpec
    splits: Mapping[str, Split]
    hashes: Mapping[str, str]
    accounts: Mapping[str, Account] = field(default_factory=dict)
    shared: SharedClasses | None = None

    @property
    def head_name(self) -> str:
        """The name of the head that answers the task."""
        return self.name if self.shared is None else SHARED_HEAD

    @property
    def num_outputs(self) -> int:
        """The width K of the head that answers the task; labels are its outputs."""
        return self.spec.num_outputs if self.shared is None else len(self.shared.names)

    @property
    def is_regression(self) -> bool:
        """Whether labels are scores."""
        return self.spec.target == "score"

    @property
    def is_span(self) -> bool:
        """Whether labels are spans of tokens (extractive question answering)."""
        return self.spec.target == "span"

    def own_labels(self, name: str) -> np.ndarray:
        """Return the labels of a split; of a shared head as the task's own class indices."""
        labels = self.split(name).labels
        return labels if self.shared is None else self.shared.to_own(labels)

    def split(self, name: str) -> Split:
        """Return a split by name.

        Raises:
            UserError: there is no such split.
        """
        if name not in self.splits:
            raise unknown("split", name, self.splits)
        return self.splits[name]
