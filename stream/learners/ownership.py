"""Whose the encoder's parameters are: a task's, or all tasks' together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from stream.learners.tags import Tags
from stream.models.encoder import Encoder
from stream.models.modules.by_task import task_of_parameters


@dataclass(frozen=True)
class Ownership:
    """Which of three kinds each parameter of the encoder is that learning changes.

    Attributes:
        task_of: by name, the task of a parameter inside a `ByTask` container. It is trained while
            that task is learned, and read by the tasks whose ``sources`` name it.
        copied: names of those that each task has a copy of its own of, which is put into the
            encoder to learn or serve the task.
        shared: names of those that all tasks share. A multi-task method shares the modules of all
            tasks, too: it learns them together.
    """

    task_of: Mapping[str, str]
    copied: frozenset[str]
    shared: frozenset[str]

    @classmethod
    def of(cls, encoder: Encoder, tags: Tags) -> Self:
        """Return whose each parameter is, once modules are inserted.

        Args:
            encoder: its parameters require gradients where learning changes them.
            tags: of the method.
        """
        task_of = task_of_parameters(encoder)
        trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
        copied = trained - task_of.keys() if tags.parameter_isolation else set()
        of_tasks = set() if tags.is_multitask else task_of.keys()
        return cls(task_of, frozenset(copied), frozenset(trained - of_tasks - copied))

    def modules_of(self, *tasks: str) -> list[str]:
        """Return the names of the parameters in the modules of some tasks."""
        return [name for name, task in self.task_of.items() if task in tasks]
