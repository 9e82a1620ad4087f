"""The `generated` source: a miniature version of each task from a seeded grammar, not real data."""

import numpy as np

from stream.config.data import GeneratedData
from stream.config.task import TaskSpec
from stream.data.sources.grammar import generate
from stream.data.task import Rows
from stream.errors import require


def read_split(data: GeneratedData, name: str, spec: TaskSpec, split: str) -> Rows:
    """Generate one split of one task: a pure function of the arguments.

    Args:
        data: how many rows per split, and the seed.
        name: the task's name; it seeds the texts.
        spec: the task's specification.
        split: ``train``, ``validation`` or ``test``.

    Raises:
        UserError: the task is a span task, for which there is no grammar.
    """
    require(
        spec.kind != "span",
        f"task {name!r}: no questions and answers are generated; take data=files or data=hub",
    )
    rows = generate(
        name,
        kind="single" if spec.num_fields == 1 else "pair",
        num_labels=None if spec.labels is None else len(spec.labels),
        score_range=None
        if spec.score_range is None
        else (spec.score_range[0], spec.score_range[1]),
        words=spec.generated.words,
        pool=spec.generated.pool,
        split=split,
        rows=getattr(data, split),
        seed=data.seed,
        between=max(spec.num_fields - 2, 0),
    )
    return Rows(rows.texts, np.array(rows.labels, np.int64 if spec.labels else np.float64))
