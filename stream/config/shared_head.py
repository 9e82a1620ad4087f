"""Settings: one head over the classes of all tasks (``scenario=shared_head``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from stream.config.setting import Settings, setting
from stream.config.task import TaskSpec
from stream.errors import require

MASKS = ("none", "labels_trick", "task")


@dataclass
class SharedHeadConfig(Settings):
    """How one head learns the classes of all tasks.

    Attributes:
        mask: between which classes the loss of new rows chooses: all met so far (``none``); those
            that occur in the batch (``labels_trick``: Zeno et al. 2018, arXiv 1803.10123); those
            of the row's own task (``task``: the ``train_mask`` of L2P, Wang et al. 2022, arXiv
            2112.08654). Stored rows of earlier tasks, and evaluation, choose between all met so
            far whatever it says.
    """

    GROUP: ClassVar[str] = "shared_head"

    mask: str = setting("none", MASKS)


def require_shares_head(learner: Any) -> None:
    """Raise UserError unless a learner can learn one head for all tasks."""
    require(
        learner.tags.shares_head,
        f"learner {learner.name} cannot share one head: what serves a task is the task's alone; "
        "scenario=inferred is for such learners",
    )


def check_classes(specs: Mapping[str, TaskSpec], shared_labels: Sequence[Sequence[str]]) -> None:
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
