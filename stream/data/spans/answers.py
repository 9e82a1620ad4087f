"""Predicted answers: from logits to the best span of the context, and its score.

Exact match and F1 are those of the official script of SQuAD v1.1 (Rajpurkar et al. 2016, arXiv
1606.05250, section 6.1). N examples; L tokens in the longest one.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

MAX_ANSWER_TOKENS = 30  # of a predicted answer, as in BERT's run_squad.py
ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Return a text in lower case, without punctuation, articles and superfluous white space.

    >>> normalised("The  U.S. Army!")
    'us army'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def exact_match(predicted: str, reference: str) -> float:
    """Return 1 if the normalised texts are equal, else 0."""
    return float(normalised(predicted) == normalised(reference))


def answer_f1(predicted: str, reference: str) -> float:
    """Return the F1 score of two normalised texts as bags of words.

    >>> answer_f1("in the old town", "old town hall")
    0.6666666666666666
    """
    ours, theirs = normalised(predicted).split(), normalised(reference).split()
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


TEXT_METRICS: Mapping[str, Callable[[str, str], float]] = {
    "answer_f1": answer_f1,
    "exact_match": exact_match,
}


def best_span(starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
    """Return the first and last token of the span with the highest sum of logits.

    The last token is not before the first, and a span has at most `MAX_ANSWER_TOKENS` tokens. Of
    equal sums the first is taken.

    Args:
        starts: logits of each token as the first of the answer, [n].
        ends: logits of each token as the last of the answer, [n].
    """
    padding = np.full(MAX_ANSWER_TOKENS - 1, -np.inf)
    padded_ends = np.concatenate([ends.astype(np.float64), padding])
    reachable_ends = sliding_window_view(padded_ends, MAX_ANSWER_TOKENS)
    best = int((starts[:, None] + reachable_ends).argmax())
    first, distance = divmod(best, MAX_ANSWER_TOKENS)
    return first, first + distance


@dataclass(frozen=True)
class Answers:
    """What is needed to turn the predicted spans of a split into text and to score them.

    Attributes:
        contexts: the whole context of each example.
        references: the right answers of each example; matching one of them is enough.
        char_spans: int32 [tokens of all examples, 2]; the characters of its text that each token
            covers: the first one, and the one after the last.
        row_starts: int64 [N]; where each example begins in ``char_spans``.
        context_spans: int64 [N, 2]; the context's first token and the one after its last.
    """

    contexts: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    char_spans: np.ndarray
    row_starts: np.ndarray
    context_spans: np.ndarray

    def __len__(self) -> int:
        return len(self.contexts)

    def select(self, indices: np.ndarray) -> "Answers":
        """Return the answers of the examples at ``indices``, in that order."""
        return Answers(
            tuple(self.contexts[i] for i in indices),
            tuple(self.references[i] for i in indices),
            self.char_spans,
            self.row_starts[indices],
            self.context_spans[indices],
        )

    def predicted(self, logits: np.ndarray) -> list[str]:
        """Return the text of each example's best span; "" where the context was cut to nothing.

        Args:
            logits: float32 [N, 2 L]; for each token two logits, as first and as last of the answer.
        """
        texts = []
        for row, (first, stop) in enumerate(self.context_spans.tolist()):
            if first == stop:
                texts.append("")
                continue
            start, end = best_span(*logits[row].reshape(-1, 2)[first:stop].T)
            context_start = int(self.row_starts[row]) + first
            low = self.char_spans[context_start + start, 0]
            high = self.char_spans[context_start + end, 1]
            texts.append(self.contexts[row][low:high])
        return texts

    def judged(self, logits: np.ndarray, metric: str) -> np.ndarray:
        """Return the score of each example's best span, float64 [N].

        Args:
            logits: as for `predicted`.
            metric: ``answer_f1`` or ``exact_match``; the best over the reference answers counts.
        """
        score = TEXT_METRICS[metric]
        pairs = zip(self.predicted(logits), self.references, strict=True)
        return np.array([max(score(text, right) for right in rights) for text, rights in pairs])
