"""Build the ordered list of tasks of a stream from the configuration."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence

from stream.config.paths import cache_folder
from stream.config.run import RunConfig
from stream.config.source import SPLITS
from stream.config.task import TaskSpec
from stream.data.cache.entries import Prepared, TaskCache
from stream.data.layout import layout_of
from stream.data.loading import load_tasks
from stream.data.look_alikes import look_alikes
from stream.data.prepare.leakage import Leak, handle_leaks, say_leaks
from stream.data.prepare.samples import num_short, subsample
from stream.data.task import LoadedTask, Task
from stream.data.text_encoder import TextEncoder
from stream.formatting import count, quoted
from stream.seeding import numpy_generator

LOG = logging.getLogger(__name__)
Notify = Callable[[str, str], None]
"""Called with what is about to be done, and how far that is."""


NAMED = 4  # tasks in one warning


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
    cache = TaskCache(config, encoder.key)
    prepared = cache.read()
    if prepared is None:
        prepared = _prepare(config, encoder, notify)
        cache.write(prepared)
    else:
        notify(f"reading {count(len(config.task), 'task')}", "as they were encoded before")
    say_leaks(prepared.leaks, config.leaks)
    _say_alike(config.task)
    _say_short(config.limits.per_class, prepared.short)
    order = arrange(prepared.tasks, config.order, config.order_seed, config.stream.orders)
    return order, prepared.leaks


def _prepare(config: RunConfig, encoder: TextEncoder, notify: Notify) -> Prepared:
    """Load every task, handle leaks between them, take samples, and encode."""
    of, all_tasks = len(config.task), count(len(config.task), "task")

    def reading(name: str, number: int) -> None:
        notify(f"reading {all_tasks}", f"{number} of {of}, {name}")

    loaded = load_tasks(config.data, config.task, cache_folder(config.cache), reading)
    notify("checking leaks", "")
    leaks = handle_leaks(loaded, config.leaks)
    short = _short(config, loaded)
    tasks = []
    for number, (name, task) in enumerate(loaded.items(), 1):
        notify(f"encoding {all_tasks}", f"{number} of {of}, {name}")
        tasks.append(_encode(config, name, task, encoder))
    return Prepared(tasks, leaks, short)


def _short(config: RunConfig, loaded: Mapping[str, LoadedTask]) -> list[str]:
    """Return which tasks have fewer training rows of a class than ``limits.per_class`` asks for."""
    wanted, short = config.limits.per_class, []
    if wanted is None:
        return []
    for name, task in loaded.items():
        labels = config.task[name].labels
        num_labels = None if labels is None else len(labels)
        found = num_short(task.rows["train"], num_labels, wanted)
        if found:
            short.append(f"{name} ({found} of {num_labels or 1})")
    return short


def _say_short(wanted: int | None, short: Sequence[str]) -> None:
    """Log which tasks have fewer training rows of a class than ``wanted``."""
    if short:
        LOG.warning(
            "limits.per_class=%d: all rows are taken of classes that have fewer: %s",
            wanted,
            _first(short),
        )


def _say_alike(tasks: Mapping[str, TaskSpec]) -> None:
    """Log which labels look alike: they may be one class, and they may be several."""
    labels: dict[str, list[str]] = {}
    for name, spec in tasks.items():
        labels.setdefault(spec.part.of or name, []).extend(spec.labels or ())
    found = [
        f"{name} ({' and '.join(map(quoted, group))})"
        for name, names in labels.items()
        for group in look_alikes(dict.fromkeys(names))
    ]
    if found:
        LOG.warning(
            "labels that look alike are classes of their own; values: in a task's YAML makes them "
            "one: %s",
            _first(found),
        )


def _first(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    more = f" and {len(texts) - NAMED} more" if texts[NAMED:] else ""
    return f"{', '.join(texts[:NAMED])}{more}"


def _encode(config: RunConfig, name: str, loaded: LoadedTask, encoder: TextEncoder) -> Task:
    """Take the task's samples (``limits``) and encode them."""
    spec, limits = config.task[name], config.limits
    num_labels = None if spec.labels is None else len(spec.labels)
    splits, hashes = {}, {}
    for split in SPLITS:
        of_train = limits.train, num_labels, limits.per_class, limits.seed
        of_others = limits.eval, num_labels, limits.eval_per_class
        rows = subsample(loaded.rows[split], *(of_train if split == "train" else of_others))
        hashes[split] = rows.digest()
        splits[split] = encoder.encode(rows, hashes[split], layout_of(spec))
    return Task(name, spec, splits, hashes, loaded.accounts)


def arrange(
    tasks: Sequence[Task],
    order: str,
    seed: int | None,
    published: Mapping[str, Sequence[str]] | None = None,
) -> list[Task]:
    """Return the tasks in the order of the stream.

    Args:
        tasks: in the given order.
        order: ``given``, ``reversed``, ``by_size`` (fewest training examples first), ``random``, or
            one of ``published``.
        seed: for a random order, which is a pure function of the seed and the *set* of names.
        published: the names of the tasks in each of the stream's own orders.
    """
    if published and order in published:
        by_name = {task.name: task for task in tasks}
        return [by_name[name] for name in published[order]]
    if order == "reversed":
        return list(reversed(tasks))
    if order == "by_size":
        return sorted(tasks, key=lambda task: (len(task.split("train")), task.name))
    if order == "random":
        in_turn = sorted(tasks, key=lambda task: task.name)
        permutation = numpy_generator(seed or 0, "order").permutation(len(in_turn))
        return [in_turn[i] for i in permutation]
    return list(tasks)


def data_hash(tasks: Sequence[Task]) -> str:
    """Return one SHA-256 of the rows of all tasks; it does not depend on the order of the tasks."""
    hashes = {task.name: dict(task.hashes) for task in tasks}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
