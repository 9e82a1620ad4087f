"""Build the ordered list of tasks of a stream from the configuration."""

import hashlib
import json
from collections.abc import Callable, Sequence

from stream.config.paths import cache_folder
from stream.config.run import RunConfig
from stream.config.task import SPLITS
from stream.data.layout import layout_of
from stream.data.loading import load_task
from stream.data.prepare.leakage import Leak, handle_leaks
from stream.data.prepare.samples import subsample
from stream.data.task import LoadedTask, Task
from stream.data.text_encoder import TextEncoder
from stream.formatting import count
from stream.seeding import numpy_generator

Notify = Callable[[str, str], None]
"""Called with what is about to be done, and how far that is."""


def build_tasks(
    config: RunConfig, encoder: TextEncoder, notify: Notify = lambda what, detail: None
) -> tuple[list[Task], list[Leak]]:
    """Load every task, handle leaks between them, take samples, encode, and put them in order.

    Args:
        config: the run's configuration.
        encoder: the backbone's tokenizer, with its cache.
        notify: called before each task is read, before leaks are looked for, and before each task
            is encoded.

    Returns:
        The tasks in order, and the leaks that were found.

    Raises:
        UserError: data that are missing or wrong, or leaks with ``leaks=error``.
    """
    loaded, tasks = {}, []
    of, all_tasks = len(config.task), count(len(config.task), "task")
    for number, (name, spec) in enumerate(config.task.items(), 1):
        notify(f"reading {all_tasks}", f"{number} of {of}, {name}")
        loaded[name] = load_task(config.data, name, spec, cache_folder(config.cache))
    notify("checking leaks", "")
    leaks = handle_leaks(loaded, config.leaks)
    for number, (name, task) in enumerate(loaded.items(), 1):
        notify(f"encoding {all_tasks}", f"{number} of {of}, {name}")
        tasks.append(_encode(config, name, task, encoder))
    return arrange(tasks, config.order, config.order_seed), leaks


def _encode(config: RunConfig, name: str, loaded: LoadedTask, encoder: TextEncoder) -> Task:
    """Take the task's samples (``limits``) and encode them."""
    spec = config.task[name]
    num_labels = None if spec.labels is None else len(spec.labels)
    splits, hashes = {}, {}
    for split in SPLITS:
        limit = config.limits.train if split == "train" else config.limits.eval
        rows = subsample(loaded.rows[split], limit, num_labels)
        hashes[split] = rows.digest()
        splits[split] = encoder.encode(rows, hashes[split], layout_of(spec))
    return Task(name, spec, splits, hashes, loaded.accounts)


def arrange(tasks: Sequence[Task], order: str, seed: int | None) -> list[Task]:
    """Return the tasks in the order of the stream.

    Args:
        tasks: in the given order.
        order: ``given``, ``reversed``, ``by_size`` (fewest training examples first) or ``random``.
        seed: for a random order, which is a pure function of the seed and the *set* of names.
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
    """Return one SHA-256 of the rows of all tasks; it does not depend on the order of the tasks."""
    hashes = {task.name: dict(task.hashes) for task in tasks}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
