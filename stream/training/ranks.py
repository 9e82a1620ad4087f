"""What makes the training of several ranks one: they share gradients, and end up alike."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.distributed.gradients import SharedGradients
from stream.distributed.world import World
from stream.learners.base import BUFFER, Learner
from stream.models.task_model import TaskModel


def part_of(batch: Batch, world: World) -> Batch:
    """Return what this rank learns of a batch: all of it where there is no other."""
    return batch if world.alone else batch.sliced(world.rank, world.size)


@contextmanager
def sharing_gradients(model: TaskModel, world: World) -> Iterator[None]:
    """Average the gradients of every backward pass over ranks inside the block."""
    if world.alone:
        yield
        return
    if model.gradients is None:
        model.gradients = SharedGradients(world.size)
    model.gradients.active = True
    try:
        yield
    finally:
        model.gradients.active = False


def check_equal(learner: Learner, world: World, when: str) -> None:
    """Check that all ranks have the same weights: they start so, and take the same steps.

    Args:
        learner: in the middle of a task.
        world: the ranks.
        when: what has just happened, for the message.
    """
    equal = world.are_equal(list(learner.trained_parameters().values()))
    assert equal, f"ranks have different weights {when}"


def share_kept(learner: Learner, task: Task, world: World) -> None:
    """Give every rank what the first one keeps of a task that all have just learned.

    All compute it from the same weights, but kernels of a GPU may add in another order each time.
    """
    if world.alone:
        return
    kept: dict[str, torch.Tensor] = {**learner.shared_state(), **learner.task_state(task.name)}
    rows = [kept.pop(name) for name in sorted(kept) if name.startswith(BUFFER)]
    assert world.are_equal(rows), "ranks store different rows"
    world.take_first(kept)
