"""Answers that are spans of a context: the best span of its logits, and what it is worth.

Exact match and F1 as the official script of SQuAD v1.1 has them (Rajpurkar et al. 2016, arXiv
1606.05250, section 6.1). N rows, L tokens of the longest.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

LONGEST = 30  # tokens of a predicted answer, as in BERT's run_squad.py
ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Return a text in lower case without punctuation, articles and needless blanks.

    >>> normalised("The  U.S. Army!")
    'us army'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def exact_match(predicted: str, reference: str) -> float:
    """Return 1 for texts that are the same once normalised, else 0."""
    return float(normalised(predicted) == normalised(reference))


def answer_f1(predicted: str, reference: str) -> float:
    """Return the F1 of the words that two normalised texts share, as often as both have them.

    >>> answer_f1("in the old town", "old town hall")
    0.6666666666666666
    """
    ours, theirs = normalised(predicted).split(), normalised(reference).split()
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


JUDGES: Mapping[str, Callable[[str, str], float]] = {
    "answer_f1": answer_f1,
    "exact_match": exact_match,
}


def best_span(starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
    """Return the first and last token whose logits [n] have the highest sum; the first of equals.

    The last is not before the first, and at most `LONGEST` tokens are taken.
    """
    behind = np.full(LONGEST - 1, -np.inf)
    reachable = sliding_window_view(np.concatenate([ends.astype(np.float64), behind]), LONGEST)
    first, more = divmod(int((starts[:, None] + reachable).argmax()), LONGEST)
    return first, first + more


@dataclass(frozen=True)
class Answers:
    """What the spans of a split's rows mean, and what they are compared with.

    Attributes:
        contexts: the whole text of each row.
        references: the right answers of each row, any of which counts.
        places: int32 [tokens of all rows, 2]; which characters of its context a token covers.
        starts: int64 [N]; where each row begins in ``places``.
        windows: int64 [N, 2]; a row's first token of the context, and the one behind the last.
    """

    contexts: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    places: np.ndarray
    starts: np.ndarray
    windows: np.ndarray

    def __len__(self) -> int:
        return len(self.contexts)

    def take(self, rows: np.ndarray) -> "Answers":
        """Return the rows at some indices, in that order."""
        return Answers(
            tuple(self.contexts[row] for row in rows),
            tuple(self.references[row] for row in rows),
            self.places,
            self.starts[rows],
            self.windows[rows],
        )

    def predicted(self, logits: np.ndarray) -> list[str]:
        """Return the text of each row's best span; empty where no token of the context is left.

        Args:
            logits: float32 [N, 2 L]; of each token as start of the answer, then as its end.
        """
        found = []
        for row, (first, stop) in enumerate(self.windows.tolist()):
            if first == stop:
                found.append("")
                continue
            start, end = best_span(*logits[row].reshape(-1, 2)[first:stop].T)
            begins = int(self.starts[row]) + first
            low, high = self.places[begins + start, 0], self.places[begins + end, 1]
            found.append(self.contexts[row][low:high])
        return found

    def judged(self, logits: np.ndarray, metric: str) -> np.ndarray:
        """Return what each row's best span is worth against the best reference, float64 [N]."""
        judge, pairs = JUDGES[metric], zip(self.predicted(logits), self.references, strict=True)
        return np.array([max(judge(text, right) for right in rights) for text, rights in pairs])
