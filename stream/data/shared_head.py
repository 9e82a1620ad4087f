"""One head for all tasks (class-incremental): labels become places among the stream's classes."""

from collections.abc import Sequence
from dataclasses import replace

from stream.config.shared_head import check_classes
from stream.data.shared_classes import SharedClasses
from stream.data.task import Task


def with_shared_head(tasks: Sequence[Task], shared_labels: Sequence[Sequence[str]]) -> list[Task]:
    """Return the tasks with one head over the classes of all.

    Args:
        tasks: the stream, in order.
        shared_labels: lists of names of tasks whose labels are the same classes.

    Raises:
        UserError: as `check_classes`.
    """
    check_classes({task.name: task.spec for task in tasks}, shared_labels)
    groups = {name: min(group) for group in shared_labels for name in group}
    found = {
        task.name: [
            f"{groups.get(task.name, task.name)}/{label}" for label in task.spec.labels or ()
        ]
        for task in tasks
    }
    names = tuple(dict.fromkeys(name for of_task in found.values() for name in of_task))
    place = {name: index for index, name in enumerate(names)}
    return [
        _placed(task, SharedClasses(names, tuple(place[name] for name in found[task.name])))
        for task in tasks
    ]


def _placed(task: Task, shared: SharedClasses) -> Task:
    """Return a task with places as labels; it may have had others."""
    splits = {}
    for name, split in task.splits.items():
        own = split.labels if task.shared is None else task.shared.to_own(split.labels)
        splits[name] = replace(split, labels=shared.to_places(own))
    return replace(task, splits=splits, shared=shared)
