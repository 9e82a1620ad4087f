"""What a column's name says: a text, half of a pair, a label, a score, or none of them."""

import re
from collections.abc import Iterable

NO_NAME = 3  # the rank of a name that says nothing


def _words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


TEXTS = _words(
    "text sentence review comment message tweet content body document utterance post question "
    "query premise hypothesis article passage context statement claim story snippet caption"
)
MINOR_TEXTS = _words("title headline subject summary description abstract answer")
NO_TEXTS = _words(
    "id ids uuid guid url uri link href date time timestamp created location timezone parse tree "
    "lang language coord coordinates count length path file filename hash"
)
LABELS = _words(
    "label labels class category target sentiment stance emotion topic y intent rating ratings "
    "star stars score similarity relatedness polarity grade"
)
MINOR_LABELS = LABELS | _words("tag tags type kind verdict opinion judgment")
NO_LABELS = NO_TEXTS | _words(
    "gold golden confidence reason state trusted judgments index annotator worker split fold "
    "partition set"
)
BESIDE_LABELS = _words("gold true my the is")  # in "gold_label"
SCORES = _words("score similarity relatedness rating grade intensity valence")
PAIRS = frozenset(
    [
        *(("premise", "hypothesis"), ("question", "sentence"), ("query", "document")),
        *(("query", "passage"), ("question", "passage"), ("question", "answer")),
        ("claim", "evidence"),
    ]
)
COUNTERPARTS = frozenset(
    [("1", "2"), ("a", "b"), ("0", "1"), ("first", "second"), ("left", "right")]
)
MADE_UP = "column"  # column_1, column_2, ... of a file without a header


def words_of(name: str) -> list[str]:
    """Return the words of a column's name in lower case, numbers apart.

    >>> words_of("goldLabel_1")
    ['gold', 'label', '1']
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def text_rank(name: str) -> int:
    """Return how much a name is that of a text, from 0 (entirely)."""
    words = set(words_of(name))
    if words & NO_TEXTS:
        return NO_NAME
    return 0 if words & TEXTS else 1 if words & MINOR_TEXTS else 2


def label_rank(name: str) -> int:
    """Return how much a name is that of a label, from 0 (entirely)."""
    words = words_of(name)
    if not words or words[-1] in NO_LABELS:
        return NO_NAME + bool(words)
    core = set(words) - BESIDE_LABELS
    if core and core <= LABELS:
        return 0
    if words[0] == "is" or words[-1] in MINOR_LABELS:
        return 1
    return 2 if MINOR_LABELS.intersection(words) else NO_NAME


def has_score_name(name: str) -> bool:
    """Return whether a name is that of a score."""
    return not SCORES.isdisjoint(words_of(name))


def are_pair(first: str, second: str) -> bool:
    """Return whether two names are those of a pair of texts, in this order."""
    one, two = words_of(first), words_of(second)
    if (" ".join(one), " ".join(two)) in PAIRS:
        return True
    if not one or one[0] == MADE_UP or len(one) != len(two):
        return False
    return _differences(one, two) in [{both} for both in COUNTERPARTS]


def _differences(one: Iterable[str], two: Iterable[str]) -> set[tuple[str, str]]:
    """Return the words that differ, by place."""
    return {(a, b) for a, b in zip(one, two, strict=True) if a != b}
