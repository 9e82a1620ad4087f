"""What a column's name says: a text, half of a pair, a label, a score, or none of them."""

import re
import unicodedata
from collections.abc import Iterable

NO_NAME = 4  # the rank of a name that says nothing of a label
NEVER = 5  # the rank of a name that says of something else that it is no label


def _words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


TEXTS = _words(
    "text sentence review comment message tweet content body document utterance post question "
    "query premise hypothesis article passage context statement claim story snippet caption "
    "phrase essay excerpt narrative complaint paragraph sms email mail transcript argument string "
    "reply response prompt sent doc abstract lyric joke quote "
    "texto texte testo tekst kommentar comentario commentaire satz mensaje 文本 内容 评论"
)
MINOR_TEXTS = _words("title headline subject summary description answer selftext resume report")
PROCESSED = _words(
    "clean cleaned processed preprocessed normalized lemmatized lemma stemmed tokenized token html "
    "stopword translated translation context prev previous next parent"
)
NO_TEXTS = _words(
    "id ids uuid guid url uri link href date time datetime timestamp created updated location "
    "timezone parse tree lang language coord coordinate count length len path file filename hash "
    "author user username name screenname handle speaker source domain version license split fold"
)
LABELS = _words(
    "label class category sentiment stance emotion intent polarity y mood feeling labelset "
    "etiqueta etichetta etikett etiquette clase classe klasse categoria categorie kategorie "
    "sentimiento polaridad stimmung 标签 类别 情感"
)
OTHER_LABELS = _words(
    "target topic rating star score similarity relatedness grade quality entailment overall "
    "relevance annotation judgment judgement verdict toxicity complexity readability subtask "
    "intensity strength agreement bewertung nota"
)
MINOR_LABELS = (
    LABELS
    | OTHER_LABELS
    | _words("tag type kind opinion level choice gold genre section department product")
)
NO_LABELS = _words(
    "id ids uuid guid url uri link href date time datetime timestamp created updated path file "
    "filename hash reason state index idx annotator worker split fold partition length count len"
)
MARKS_OF_OTHERS = _words("golden trusted confidence")  # as CrowdFlower names what is about labels
BESIDE_LABELS = _words("gold true my the is text string str mean avg average final overall")
OF_LABELS = _words("index id idx num number code encoded int name")  # in "label_id"
SCORES = _words(
    "score similarity relatedness rating grade intensity valence arousal dominance complexity "
    "readability strength agreement toxicity overall quality star"
)
PAIR_ROLES = tuple(
    (_words(first), _words(second))
    for first, second in (
        ("premise context passage paragraph document article text sentence evidence", "hypothesis"),
        ("premise", "conclusion"),
        ("instruction prompt", "output completion"),
        ("question query", "answer sentence passage paragraph context document article"),
        ("query", "title product description"),
        ("claim", "evidence sentence document article context"),
        ("context post prompt utterance comment message tweet", "response reply"),
        ("text sentence original", "paraphrase"),
    )
)
_PASSAGES = ("passage", "paragraph", "context", "document", "article", "story")
_QUESTIONS, _ANSWERS = ("question", "query"), ("answer", "option", "choice", "candidate")
SEVERAL_ROLES = (  # of three or more texts that are read together: the names of each, in words
    (("word", "lemma", "term"), ("sentence 1", "context 1"), ("sentence 2", "context 2")),
    (("premise", "context"), ("choice 1",), ("choice 2",), _QUESTIONS),
    (_PASSAGES, _QUESTIONS, _ANSWERS),
)
FILLERS = _words("text sentence string title")  # in "question_text"
COUNTERPARTS = (
    *(("1", "2"), ("0", "1"), ("a", "b"), ("x", "y"), ("one", "two"), ("first", "second")),
    *(("left", "right"), ("source", "target"), ("src", "tgt"), ("original", "modified")),
)
THIRD = {"2": "3", "1": "2", "b": "c", "two": "three", "second": "third"}
SECOND = _words("2 b pair two second")  # in "text2", which stands beside "text"
MADE_UP = "column"  # column_1, column_2, ... of a file without a header
KNOWN = TEXTS | MINOR_TEXTS | MINOR_LABELS | NO_TEXTS | NO_LABELS | _words("is full gold true pair")


def words_of(name: str) -> list[str]:
    """Return the words of a column's name in lower case and the singular, numbers apart.

    >>> words_of("goldLabels_1"), words_of("reviewtext"), words_of("catégorie")
    (['gold', 'label', '1'], ['review', 'text'], ['categorie'])
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    pieces = re.findall(r"\d+|[^\W\d_]+", plain)
    camel = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^A-Za-z]+"
    words = [word.lower() for piece in pieces for word in re.findall(camel, piece)]
    return [part for word in words for part in _compound(_singular(word))]


def _singular(word: str) -> str:
    """Return a word without the s of its plural."""
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "is", "us"))
    return word[:-1] if is_plural and word[:-1] in KNOWN else word


def _compound(word: str) -> list[str]:
    """Return the two known words that a word is made of, or the word."""
    if word in KNOWN:
        return [word]
    for at in range(2, len(word) - 1):
        if word[:at] in KNOWN and _singular(word[at:]) in KNOWN:
            return [word[:at], _singular(word[at:])]
    return [word]


def text_rank(name: str) -> int:
    """Return how much a name is that of a text, from 0 (entirely) to 3."""
    words = [word for word in words_of(name) if not word.isdigit()]
    if not words or words[-1] in NO_TEXTS or _is_about_the_row(name):
        return 3 if words else 2
    if not TEXTS.isdisjoint(words):
        return int(len(words) > 1 and not PROCESSED.isdisjoint(words))
    return 1 if not MINOR_TEXTS.isdisjoint(words) else 2


def label_rank(name: str) -> int:
    """Return how much a name is that of a label, from 0 (entirely) to `NEVER`.

    Of a nested field such as ``data.label``, the last part counts, if it says anything.
    """
    if _is_about_the_row(name):
        return NEVER
    rank = _label_rank(name.rpartition(".")[2])
    return rank if rank != NO_NAME else _label_rank(name)


def _is_about_the_row(name: str) -> bool:
    """Return whether a nested field describes its row, such as ``meta.score``."""
    return name.lower().startswith(("meta.", "metadata."))


def _label_rank(name: str) -> int:
    """Return how much a name, or a part of one, is that of a label."""
    words = words_of(name)
    found = [word for word in words if not word.isdigit()]
    core = set(found) - BESIDE_LABELS or set(found)
    is_numbered = len(found) < len(words)
    if not found:
        return NO_NAME
    if core <= LABELS:
        return int(is_numbered)
    is_of_label = core <= LABELS | OF_LABELS and not core <= OF_LABELS
    if not MARKS_OF_OTHERS.isdisjoint(found) or (found[-1] in NO_LABELS and not is_of_label):
        return NEVER
    if core <= LABELS | OTHER_LABELS:
        return 1 + is_numbered
    if is_of_label or words[0] in ("is", "has") or found[-1] in MINOR_LABELS:
        return 2
    return NO_NAME if MINOR_LABELS.isdisjoint(found) else 3


def has_score_name(name: str) -> bool:
    """Return whether a name is that of a score."""
    return not SCORES.isdisjoint(words_of(name))


def are_pair(first: str, second: str, names: Iterable[str] = ()) -> bool:
    """Return whether two names are those of a pair of texts, in this order.

    Args:
        first: the name of the text that is read first.
        second: the name of the other one.
        names: all names; the first two of three or more like texts are no pair.
    """
    one, two = words_of(first), words_of(second)
    if not one or not two or one[0] == MADE_UP:
        return False
    if _role(one) != _role(two) and any(_role(one) in a and _role(two) in b for a, b in PAIR_ROLES):
        return True
    if len(two) == len(one) + 1:
        return two[:-1] == one and two[-1] in SECOND and not _has_third(two, two[-1], names)
    differences = [(a, b) for a, b in zip(one, two, strict=False) if a != b]
    if len(one) != len(two) or len(set(differences)) != 1:
        return False
    is_pair = differences[0] in COUNTERPARTS
    return is_pair and not _has_third(two, differences[0][1], names)


def several_texts(names: Iterable[str]) -> list[str]:
    """Return three or more names of texts that are read together, in reading order, or none.

    >>> several_texts(["label", "sentence2", "word", "sentence1"]), several_texts(["text", "word"])
    (['word', 'sentence1', 'sentence2'], [])
    """
    by_words = {" ".join(words_of(name)): name for name in names}
    for roles in SEVERAL_ROLES:
        found = [next((w for w in known if w in by_words), None) for known in roles]
        if None not in found:
            return [by_words[words] for words in found if words]
    return []


def _role(words: list[str]) -> str:
    """Return the word that says which half of a pair a text is; ``""`` if none does alone."""
    core = [word for word in words if word not in FILLERS] or words[-1:]
    return core[0] if len(core) == 1 else ""


def _has_third(words: list[str], which: str, names: Iterable[str]) -> bool:
    """Return whether a third text follows the first two, as ``choice3`` does."""
    third = [THIRD.get(which, "") if word == which else word for word in words]
    return which in THIRD and any(words_of(name) == third for name in names)
