"""Leaks: texts held out by one task that stand in the training rows of any task of the stream.

A real one: MRPC and STS-B share 1,500 pairs, and 498 of MRPC's test pairs stand in STS-B's train.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stream.data.task import LoadedTask
from stream.errors import UserError, require

LOG = logging.getLogger(__name__)
HELD_OUT = ("validation", "test")


@dataclass(frozen=True)
class Leak:
    """``count`` training rows of ``train_task`` whose text ``held_out_task`` has in ``split``."""

    train_task: str
    held_out_task: str
    split: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} in {self.train_task} train from {self.held_out_task} {self.split}"


def handle_leaks(tasks: Mapping[str, LoadedTask], mode: str) -> list[Leak]:
    """Count leaks over the whole stream, then do as ``mode`` says.

    ``drop`` takes the rows out of train (their account says so), ``warn`` keeps them, ``error``
    stops. Every mode but ``error`` says what it found.

    Raises:
        UserError: leaks with ``mode`` error, or a training set that is nothing but leaks.
    """
    held_out = {
        (name, split): task.rows[split].keys for name, task in tasks.items() for split in HELD_OUT
    }
    everything = np.concatenate(list(held_out.values()))
    leaks = []
    for name, task in tasks.items():
        train = task.rows["train"].keys
        for (other, split), keys in held_out.items():
            count = int(np.isin(train, keys).sum())
            if count:
                leaks.append(Leak(name, other, split, count))
        if mode == "drop":
            task.drop_from_train(np.isin(train, everything), "leak")
            require(len(task.rows["train"]) > 0, f"task {name!r}: every training row is a leak")
    if leaks:
        found = "held-out texts in training rows: " + "; ".join(map(str, leaks))
        if mode == "error":
            raise UserError(f"{found}. leaks=drop takes them out of train, leaks=warn keeps them")
        LOG.warning("%s (%s)", found, "dropped from train" if mode == "drop" else "kept")
    return leaks
