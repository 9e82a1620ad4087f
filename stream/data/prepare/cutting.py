"""From the rows of a set to those of one part of it; the classes of a part are its own."""

from dataclasses import replace

import numpy as np

from stream.config.task import TaskSpec
from stream.data.prepare.rows import repeats
from stream.data.table import Account
from stream.data.task import LoadedTask, Rows

OTHER_CLASS = "other_class"
"""Why a part lacks a row of its set: the class of the row is none of the part's."""


def part_of(whole: LoadedTask, spec: TaskSpec) -> LoadedTask:
    """Return the rows of a part; every row of the set is in its account.

    Args:
        whole: the set; its labels are places in ``spec.part.labels``.
        spec: the part.
    """
    labels = list(spec.labels or ())
    place = {label: number for number, label in enumerate(labels)}
    own = np.array([place.get(label, -1) for label in spec.part.labels], np.int64)
    part = LoadedTask({}, {}, {})
    for split, rows in whole.rows.items():
        new = own[rows.labels]
        kept = np.flatnonzero(new >= 0)
        selected = rows.select(kept)
        part.rows[split] = replace(selected, labels=new[kept])
        part.rows[split].__dict__["keys"] = selected.keys  # computed once a row
        part.lines[split] = whole.lines[split][kept]
        others = whole.lines[split][new < 0]
        part.accounts[split] = _account(whole.accounts[split], part.rows[split], others)
    return part


def _account(of_set: Account, rows: Rows, others: np.ndarray) -> Account:
    """Return the account of a split of a part.

    Args:
        of_set: the account of the set.
        rows: the rows of the part.
        others: the lines of the set's other rows, int64 [number of them].
    """
    account = replace(
        of_set,
        kept=len(rows),
        dropped=dict(of_set.dropped),
        lines={reason: list(lines) for reason, lines in of_set.lines.items()},
        provenance=dict(of_set.provenance),
    )
    account.drop(OTHER_CLASS, others.tolist())
    same, other = repeats(rows.keys, rows.labels)
    account.repeated, account.contradicting = int(same.sum()), int(other.sum())
    account.check()
    return account
