"""One head for all tasks (class-incremental): labels become places among the stream's classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from stream.config.task import TaskSpec
from stream.data.shared_classes import SharedClasses
from stream.data.task import Task
from stream.errors import require


def check_shared(specs: Mapping[str, TaskSpec], shared_labels: Sequence[Sequence[str]]) -> None:
    """Check that one head can answer tasks.

    Args:
        specs: the tasks by name.
        shared_labels: lists of names of tasks whose labels are the same classes.

    Raises:
        UserError: a task whose labels are no classes, or tasks that are said to share their labels
            and do not.
    """
    others = [name for name, spec in specs.items() if spec.target != "class"]
    require(
        not others,
        f"scenario=shared_head is for tasks with classes; these have none: {', '.join(others)}",
    )
    for group in shared_labels:
        present = [name for name in group if name in specs]
        for one, other in pairwise(present):
            labels, others_labels = specs[one].labels, specs[other].labels
            require(
                labels == others_labels,
                f"stream.shared_labels: {one} and {other} have different labels: {labels} and "
                f"{others_labels}",
            )


def with_shared_head(tasks: Sequence[Task], shared_labels: Sequence[Sequence[str]]) -> list[Task]:
    """Return the tasks with one head over the classes of all.

    Args:
        tasks: the stream, in order.
        shared_labels: lists of names of tasks whose labels are the same classes.

    Raises:
        UserError: as `check_shared`.
    """
    check_shared({task.name: task.spec for task in tasks}, shared_labels)
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
