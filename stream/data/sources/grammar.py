"""A seeded grammar that writes miniature classification, regression and pair tasks.

A text is a clause such as "the fox watched the violin near the soup". Its *roles* (agent, patient,
the noun after each preposition) are filled with nouns of the same few semantic fields. The label
depends only on the noun (or adjective) of the task's *focus* role. So every text contains words of
several classes: a frozen encoder cannot tell which one decides, and a trained encoder learns to
read one role. Other tasks read other roles and group the fields differently, so what one task
teaches the encoder is wrong for the next.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream.config.source import SPLITS
from stream.data.sources import lexicon
from stream.data.sources.lexicon import Clause, Rule, Units
from stream.errors import choose, require

WORDS = range(3, 49)  # valid mean lengths of a text: the shortest clause to all slots filled
WITH_ARTICLES = 5  # shorter texts are headlines: "fox watched violin"
POOL_UNITS = 12  # units of a task in a pool; the same for all, because they share their texts
PAIR_UNITS = 8  # units of a task whose classes are not fields (and of a regression task)
MIN_UNITS = 6  # units of any other task, at least; with few classes, each has several units
VERBS, ENDINGS = lexicon.VERBS.split(), lexicon.ENDINGS.split()
SCORE_NOISE = 0.05  # standard deviation of the noise of a score, as a fraction of its range

Word = tuple[int, str]  # the index of its unit, the word itself
Row = tuple[tuple[str, ...], int | float]


@dataclass(frozen=True)
class GeneratedRows:
    """The rows of one split.

    Attributes:
        texts: one or two texts per row.
        labels: class indices, or scores for a regression task.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[int | float, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed about a task before its first row is drawn.

    Attributes:
        rule: how the label follows from the text.
        focus: the role that decides the label.
        roles: all roles of a text.
        nouns: units (groups) of nouns.
        tones: units of adjectives.
        classes: the class of each unit, of ``tones`` for the rule "tone", otherwise of ``nouns``.
        words: the mean number of words of a text.
        num_labels: the number of classes; None for regression.
        score_range: the lowest and highest score.
        takes_all: whether a unit that is chosen for a row fills all roles, not only the focus.
    """

    rule: Rule
    focus: str
    roles: tuple[str, ...]
    nouns: Units
    tones: Units
    classes: tuple[int, ...]
    words: int
    num_labels: int | None
    score_range: tuple[float, float]
    takes_all: bool


def generate(  # noqa: PLR0913 - a task's specification, all by name
    name: str,
    *,
    kind: str,
    num_labels: int | None,
    score_range: tuple[float, float] | None,
    words: int,
    pool: str | None,
    split: str,
    rows: int,
    seed: int,
    between: int = 0,
) -> GeneratedRows:
    """Generate the first ``rows`` rows of one split of the task called ``name``.

    Row i depends only on the seed, the names and i, so a larger number of rows begins with the same
    rows. Single-text tasks of one pool with the same ``words`` share all texts, each with its own
    labels. Pair tasks of one pool share their rule and their training rows.

    Args:
        name: seeds the rule and, without a pool, the texts.
        kind: "single" or "pair".
        num_labels: the number of classes; None for regression.
        score_range: the lowest and highest score of a regression task; None is (0, 1).
        words: the mean number of words per text.
        pool: seeds the texts instead of the name.
        split: "train", "validation" or "test"; no text occurs in two of them.
        rows: the number of rows; every class occurs if it is at least ``num_labels``.
        seed: another seed gives other texts and other groups of fields.
        between: how many texts that say nothing of the label stand between the two of a pair.

    Raises:
        UserError: a value is not one of the valid ones, or there are too many classes.
    """
    choose("kind", kind, ("single", "pair"))
    choose("split", split, SPLITS)
    require(words in WORDS, f"words must be from {WORDS[0]} to {WORDS[-1]}, got {words}")
    plan = _plan(name, kind, num_labels, score_range or (0.0, 1.0), words, pool, seed)
    source = name if kind == "pair" and split != "train" else pool or name
    names = (seed, "rows", source, split)
    drawn = [_draw_row(plan, kind, split, i, _rng(*names, i), between) for i in range(rows)]
    return GeneratedRows(tuple(texts for texts, _ in drawn), tuple(label for _, label in drawn))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _rng(*names: str | int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(_hash(json.dumps(names))))


def _plan(  # noqa: PLR0913, PLR0917 - a task's specification
    name: str,
    kind: str,
    num_labels: int | None,
    score_range: tuple[float, float],
    words: int,
    pool: str | None,
    seed: int,
) -> Plan:
    shares_texts = pool is not None and kind == "single"
    # The texts of a pair are written to fit its label, so pooled pair tasks must share their rule.
    rng = _rng(seed, "rule", pool if pool and kind == "pair" else name)
    rule = lexicon.choose_rule(name, kind, num_labels, is_pooled=pool is not None, rng=rng)
    texts_rng = _rng(seed, "texts", pool or name)
    spare_words = words - (6 if rule.kind == "tone" else 3)  # "tone" describes every noun
    num_phrases = max(spare_words // 4, int(shares_texts or rule.focus == "phrase"))
    markers = texts_rng.permutation(lexicon.MARKERS.split()).tolist()[:num_phrases]
    num_units = PAIR_UNITS
    if shares_texts:
        num_units = POOL_UNITS
        require((num_labels or 2) <= num_units, f"tasks of a pool have at most {num_units} classes")
    elif num_labels and rule.kind not in ("same", "level"):
        num_units = num_labels * -(-MIN_UNITS // num_labels)
    nouns = lexicon.noun_units(num_units, texts_rng)
    tones = tuple(tuple(line.split()) for line in lexicon.TONES.values())
    tones = tones[:num_labels] if rule.kind == "tone" else tones
    return Plan(
        rule=rule,
        focus=markers[0] if rule.focus == "phrase" else rule.focus,
        roles=("agent", "patient", *markers),
        nouns=nouns,
        tones=tones,
        classes=_classes(len(tones if rule.kind == "tone" else nouns), num_labels, rng),
        words=words,
        num_labels=num_labels,
        score_range=score_range,
        takes_all=shares_texts or rule.kind == "topic",
    )


def _classes(num_units: int, num_labels: int | None, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the class of each unit; each class has one of the first ``num_labels`` units."""
    num_classes = num_labels or num_units
    blocks = [rng.permutation(num_classes) for _ in range(-(-num_units // num_classes))]
    return tuple(np.concatenate(blocks).tolist()[:num_units])


def _draw_row(
    plan: Plan, kind: str, split: str, index: int, rng: np.random.Generator, between: int
) -> Row:
    """Draw until the hash of the texts belongs to the split, so that no two splits share a text."""
    draw = _draw_pair if kind == "pair" else _draw_single
    while True:
        texts, label = draw(plan, index, rng)
        if between:
            others = [_draw_clause(plan, index, rng).write() for _ in range(between)]
            texts = (texts[0], *others, *texts[1:])
        if SPLITS[_hash("\n".join(texts).casefold()) % len(SPLITS)] == split:
            return texts, label


def _draw_single(plan: Plan, index: int, rng: np.random.Generator) -> Row:
    clause = _draw_clause(plan, index, rng)
    text = clause.write()
    if plan.rule.kind == "order":
        label = index if index < 2 else int(rng.integers(2))
        return (text if label else _scramble(text.split(), rng),), label
    words = clause.adjectives if plan.rule.kind == "tone" else clause.nouns
    label = plan.classes[words[plan.focus][0]]
    part = label / (len(plan.classes) - 1)
    return (text,), label if plan.num_labels else _score(part, plan, rng)


def _draw_pair(plan: Plan, index: int, rng: np.random.Generator) -> Row:
    first, second = _draw_clause(plan, index, rng), _draw_clause(plan, index, rng)
    drawn_focus = second.nouns[plan.focus]
    shared = _shuffled(plan.roles, rng)[: rng.integers(len(plan.roles) + 1)]
    for role, word in first.nouns.items():
        second.nouns[role] = word if role in shared else _draw(plan.nouns, rng, unlike=word[0])
    label: int | float
    if plan.rule.kind == "overlap":
        label = _score(len(shared) / len(plan.roles), plan, rng)
    elif plan.rule.kind == "second":
        second.nouns[plan.focus] = drawn_focus
        label = plan.classes[drawn_focus[0]]
    else:
        num_labels = plan.num_labels or 2
        label = index if index < num_labels else int(rng.integers(num_labels))
        second.nouns[plan.focus] = _related(first.nouns[plan.focus], label, plan, rng)
    return (first.write(is_question=plan.rule.is_question), second.write()), label


def _related(word: Word, label: int, plan: Plan, rng: np.random.Generator) -> Word:
    """Return the focus noun of the second text, given that of the first text and the class."""
    if label == (plan.rule.matching if plan.rule.kind == "same" else 0):
        return word
    if plan.rule.kind == "level" and label == 1:
        return word[0], _pick([noun for noun in plan.nouns[word[0]] if noun != word[1]], rng)
    return _draw(plan.nouns, rng, unlike=word[0])


def _score(part: float, plan: Plan, rng: np.random.Generator) -> float:
    low, high = plan.score_range
    noisy = min(1.0, max(0.0, part + SCORE_NOISE * rng.standard_normal()))
    return low + (high - low) * round(noisy, 3)


def _draw_clause(plan: Plan, index: int, rng: np.random.Generator) -> Clause:
    """Draw every slot of a text, and its length.

    The first rows use the units in turn, so that every class occurs. The texts of a pool must not
    depend on the focus, which differs between its tasks, so there the unit fills all roles.
    """
    is_toned = plan.rule.kind == "tone"
    nouns = {role: _draw(plan.nouns, rng) for role in plan.roles}
    adjectives = {role: _draw(plan.tones, rng) for role in plan.roles}
    deciding, units = (adjectives, plan.tones) if is_toned else (nouns, plan.nouns)
    if index < len(units) or plan.rule.kind == "topic":
        unit = index if index < len(units) else deciding[plan.focus][0]
        for role in plan.roles if plan.takes_all else (plan.focus,):
            deciding[role] = (unit, _pick(units[unit], rng))
    articles = plan.words >= WITH_ARTICLES
    least = (3 if articles else 2) * len(plan.roles) - 1
    num_spare = plan.words + int(rng.integers(-1, 2)) - least
    num_adjectives = len(plan.roles) if is_toned else min(len(plan.roles), max(0, num_spare))
    num_endings = max(0, num_spare - num_adjectives)
    described = _shuffled(plan.roles, rng)[:num_adjectives]
    return Clause(
        nouns=nouns,
        adjectives={role: adjectives[role] for role in described},
        verb=_pick(VERBS, rng),
        markers=_shuffled(plan.roles[2:], rng),
        endings=_shuffled(ENDINGS, rng)[:num_endings],
        articles=articles,
    )


def _shuffled(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the words in the order that ``rng.permutation(words)`` gives.

    An array of texts takes longer to make than to permute.
    """
    places: list[int] = rng.permutation(len(words)).tolist()
    return [words[place] for place in places]


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


def _draw(units: Units, rng: np.random.Generator, *, unlike: int | None = None) -> Word:
    unit = int(rng.integers(len(units)))
    while unit == unlike:
        unit = int(rng.integers(len(units)))
    return unit, _pick(units[unit], rng)


def _scramble(words: list[str], rng: np.random.Generator) -> str:
    """Swap two neighbouring words, which makes nonsense of any of these sentences."""
    first = int(rng.integers(len(words) - 1))
    return " ".join([*words[:first], words[first + 1], words[first], *words[first + 2 :]])
