"""Report what became of the rows of a task, as lines of text."""

from collections.abc import Iterator

import numpy as np

from stream.data.prepare.shortages import shortages
from stream.data.table import Account
from stream.data.task import Task


def dropped(account: Account) -> str:
    """Return how many rows were dropped and why, such as ``2 no_text (line 3, 9)``."""
    parts = []
    for reason, count in account.dropped.items():
        lines = ", ".join(map(str, account.lines[reason]))
        more = ", ..." if count > len(account.lines[reason]) else ""
        parts.append(f"{count:,} {reason} (line {lines}{more})")
    return "; ".join(parts) or "none"


def account_lines(task: Task) -> Iterator[str]:
    """Yield a few lines per split: source, read = kept + dropped, repeats, encoding, labels."""
    for name, account in task.accounts.items():
        split = task.splits[name]
        dialect = f" ({account.dialect})" if account.dialect else ""
        yield f"{name}: {account.where}{dialect}"
        num_dropped = sum(account.dropped.values())
        kept = f"{account.read:,} read = {account.kept:,} kept + {num_dropped:,} dropped"
        yield f"  {kept}: {dropped(account)}"
        if account.repeated or account.contradicting:
            yield (
                f"  the same text stands earlier in the split: {account.repeated:,} with the same "
                f"label, {account.contradicting:,} with another one"
            )
        yield f"  {len(split):,} encoded, {split.truncated:,} of them cut; {_labels(task, name)}"
        yield from (f"  {line}" for line in shortages(task, name))


def _labels(task: Task, name: str) -> str:
    """Return how often each label occurs, the range of scores, or how many answers fit."""
    split = task.split(name)
    if task.is_span:
        return f"{(split.labels[:, 1] > 0).sum():,} with the whole answer inside"
    if task.spec.labels is None:
        return f"scores {split.labels.min():.2f} to {split.labels.max():.2f}"
    counts = np.bincount(task.own_labels(name), minlength=len(task.spec.labels))
    return ", ".join(f"{n!r} {c:,}" for n, c in zip(task.spec.labels, counts, strict=True))
