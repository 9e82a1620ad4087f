"""What a learner stores, in parameters and bytes: counted whole, or from task to task."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from stream.data.task import Task
from stream.learners.base import Learner
from stream.models.four_bit import FourBitWeight


def count_stored(states: Iterable[Mapping[str, torch.Tensor]]) -> tuple[int, int]:
    """Return (parameters, bytes) of the union of ``states``; a shared tensor counts once.

    Tensors are the same where they share memory and shape, whatever their names.
    """
    seen = {id(tensor): tensor for state in states for tensor in state.values()}
    unique = {(t.device, t.data_ptr(), tuple(t.shape)): t for t in seen.values()}
    parameters = sum(map(_numbers_in, unique.values()))
    return parameters, sum(tensor.numel() * tensor.element_size() for tensor in unique.values())


def _numbers_in(tensor: torch.Tensor) -> int:
    """Return how many parameters a tensor holds; places of sparse ones are bytes alone."""
    if isinstance(tensor, FourBitWeight):
        return tensor.numbers
    return tensor.numel() if tensor.is_floating_point() else 0


class StoredCount:
    """The count of one learner, task by task.

    What an isolated task owns never changes and is no other task's, so it is counted once, when it
    was learned. Whatever else there is does not grow with the tasks.
    """

    def __init__(self) -> None:
        self._tasks = 0  # so many are counted
        self._own = 0, 0  # what they own
        self._common: dict[int, torch.Tensor] = {}  # what else serves any of them

    def of(self, learner: Learner, tasks: Sequence[Task]) -> tuple[int, int]:
        """Return `count_stored` of all that ``learner`` stores.

        Args:
            learner: the same at every call.
            tasks: all that it has learned, in order.
        """
        if not learner.tags.parameter_isolation:
            return count_stored(learner.stored_states(tasks))
        for task in tasks[self._tasks :]:
            own = count_stored([learner.task_state(task.name)])
            self._own = self._own[0] + own[0], self._own[1] + own[1]
            self._common |= {id(t): t for t in learner.common_state(task.name).values()}
        self._tasks = len(tasks)
        common = {str(key): tensor for key, tensor in self._common.items()}
        rest = count_stored([common, *learner.stored_states(())])
        return self._own[0] + rest[0], self._own[1] + rest[1]
