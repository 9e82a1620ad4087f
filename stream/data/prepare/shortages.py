"""What rows lack: entries of the YAML and classes without one, enough for a score or a metric."""

from collections.abc import Iterator

import numpy as np

from stream.data.task import Split, Task
from stream.formatting import count

FEW = 10  # rows; each of fewer is more than ten points of a score
SHOWN = 3  # names of classes
CONSTANT_IS_UNDEFINED = ("matthews_correlation", "spearman", "pearson")


def shortages(task: Task, name: str) -> Iterator[str]:
    """Yield what the rows of a split lack, in words; nothing where they suffice.

    Args:
        task: the task.
        name: the split, ``train`` or one that is scored.
    """
    split = task.split(name)
    rows = count(len(split), f"{name} row")
    if task.spec.labels is not None:
        present = np.bincount(task.own_labels(name), minlength=len(task.spec.labels)) > 0
        absent = [
            label for label, there in zip(task.spec.labels, present, strict=True) if not there
        ]
        if absent:
            named = ", ".join(map(repr, absent[:SHOWN])) + (", ..." if absent[SHOWN:] else "")
            yield f"{len(absent)} of {len(present)} classes have none of its {rows}: {named}"
    if name == "train":
        idle = task.accounts[name].idle_entries if name in task.accounts else []
        if idle:
            yield f"the YAML names labels that no row of the source has: {', '.join(idle)}"
        return
    if len(split) < FEW:
        yield f"its score is measured on {rows}: one row is {100 / len(split):.0f} points"
    if _is_undefined(task, split):
        yield f"{task.spec.metric} is undefined on its {rows}, all of one label: recorded as 0"


def _is_undefined(task: Task, split: Split) -> bool:
    """Return whether the metric has no value on a split, whatever is predicted."""
    constant = len(np.unique(split.labels)) == 1
    return constant and task.spec.metric in CONSTANT_IS_UNDEFINED
