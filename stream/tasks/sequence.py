"""From the configuration to the ordered list of tasks of a stream."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stream.config import FilesData, GeneratedData, Limits, RunConfig
from stream.errors import UserError
from stream.seeding import numpy_generator
from stream.task_spec import TaskSpec
from stream.tasks import source_files, source_generated
from stream.tasks.encode import TextEncoder
from stream.tasks.limits import subsample
from stream.tasks.task import SPLITS, Rows, Task

DATA = {"generated": GeneratedData, "files": FilesData}
_READERS: Mapping[str, Callable[[Any, str, TaskSpec, str], Rows]] = {
    "generated": source_generated.read_split,
    "files": source_files.read_split,
}


def build_tasks(
    config: RunConfig, encoder: TextEncoder, on_task: Callable[[str], None] = lambda name: None
) -> list[Task]:
    """Read, limit and encode every task, then put them in order.

    Args:
        config: the run's configuration.
        encoder: the backbone's tokenizer.
        on_task: called with each task's name before it is read.
    """
    tasks = []
    for name, spec in config.task.items():
        on_task(name)
        tasks.append(_build(config, name, spec, encoder))
    return arrange(tasks, config.order, config.order_seed)


def _build(config: RunConfig, name: str, spec: TaskSpec, encoder: TextEncoder) -> Task:
    """Read, limit and encode one task."""
    read = _READERS[config.data.source]
    num_labels = None if spec.labels is None else len(spec.labels)
    splits, hashes = {}, {}
    for split in SPLITS:
        limit = _limit(config.limits, split)
        rows = subsample(read(config.data, name, spec, split), limit, num_labels)
        if not len(rows):
            raise UserError(f"task {name!r}: split {split!r} is empty")
        splits[split] = encoder.encode(rows)
        hashes[split] = rows.digest()
    return Task(name, spec, splits, hashes)


def _limit(limits: Limits, split: str) -> int | None:
    """Return the most rows that a split may have."""
    return limits.train if split == "train" else limits.eval


def arrange(tasks: Sequence[Task], order: str, seed: int | None) -> list[Task]:
    """Permute the tasks: ``given``, ``reversed``, ``by_size`` (small first) or ``random``.

    A random order is a pure function of the seed and the *set* of names.
    """
    if order == "reversed":
        return list(reversed(tasks))
    if order == "by_size":
        return sorted(tasks, key=lambda task: (len(task.split("train")), task.name))
    if order == "random":
        by_name = sorted(tasks, key=lambda task: task.name)
        permutation = numpy_generator(seed or 0, "order").permutation(len(by_name))
        return [by_name[i] for i in permutation]
    return list(tasks)


def data_hash(tasks: Sequence[Task]) -> str:
    """Return one SHA-256 for the rows of all tasks, whatever their order."""
    hashes = {task.name: dict(task.hashes) for task in tasks}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
