"""Leaks: held-out texts of one task that occur in the training rows of any task of the stream.

A real example: MRPC and STS-B share 1,500 pairs, and 498 of MRPC's test pairs are in the training
set of STS-B.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream.data.task import LoadedTask
from stream.errors import UserError, require

LOG = logging.getLogger(__name__)
HELD_OUT_SPLITS = ("validation", "test")


@dataclass(frozen=True)
class Leak:
    """Training rows of one task whose text is held out by another (or the same) task.

    Attributes:
        train_task: the task with the training rows.
        held_out_task: the task that holds the texts out.
        split: the split of ``held_out_task`` that contains them.
        count: the number of these training rows.
    """

    train_task: str
    held_out_task: str
    split: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} in {self.train_task} train from {self.held_out_task} {self.split}"


def handle_leaks(tasks: Mapping[str, LoadedTask], mode: str) -> list[Leak]:
    """Count leaks over the whole stream and handle them.

    Args:
        tasks: the tasks by name; with ``drop`` their training rows change.
        mode: ``drop`` removes the rows from train and records it in their account, ``warn`` keeps
            them, ``error`` stops.

    Returns:
        All leaks that were found.

    Raises:
        UserError: there are leaks and ``mode`` is ``error``, or every training row of a task is a
            leak.
    """
    held_out = {
        (name, split): task.rows[split].keys
        for name, task in tasks.items()
        for split in HELD_OUT_SPLITS
    }
    all_held_out = np.unique(np.concatenate(list(held_out.values())))
    leaks = []
    for name, task in tasks.items():
        train = task.rows["train"].keys
        leaking = _among(train, all_held_out)
        if not leaking.any():
            continue
        for (other, split), keys in held_out.items():
            count = int(np.isin(train[leaking], keys).sum())
            if count:
                leaks.append(Leak(name, other, split, count))
        if mode == "drop":
            task.drop_from_train(leaking, "leak")
            require(len(task.rows["train"]) > 0, f"task {name!r}: every training row is a leak")
    if leaks and mode == "error":
        told = f"{_summary(leaks)}. leaks=drop takes them out of train, leaks=warn keeps them"
        raise UserError(told)
    return leaks


def say_leaks(leaks: Sequence[Leak], mode: str) -> None:
    """Log what was found and what became of it, if anything was.

    Args:
        leaks: what `handle_leaks` returned.
        mode: ``drop`` or ``warn``.
    """
    if leaks:
        done = "dropped from train" if mode == "drop" else "kept"
        LOG.warning("%s (%s)", _summary(leaks), done)


def _summary(leaks: Sequence[Leak]) -> str:
    """Return all leaks in one line."""
    return f"held-out texts in training rows: {'; '.join(map(str, leaks))}"


def _among(keys: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Return which keys are among others that are in rising order, bool [N].

    It takes N log M steps for M others; to sort both each time would make a stream of T tasks take
    T times as long.
    """
    places = np.searchsorted(ordered, keys)
    places[places == len(ordered)] = 0  # above them all; the first one differs
    return ordered[places] == keys
