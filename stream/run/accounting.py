"""After a task: what is stored now, and whether what serves earlier tasks is untouched."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from stream.data.task import Task
from stream.errors import IsolationError
from stream.fingerprint import Fingerprinter
from stream.models.four_bit import FourBitWeight
from stream.run.run import Run


class ServedFingerprints:
    """Fingerprints of what serves the tasks of a run at one moment, each computed once.

    Use a new one after anything was trained.
    """

    def __init__(self, run: Run):
        self._run = run
        self._fingerprinter = Fingerprinter()
        self._known: dict[str, str] = {}

    def of(self, task: Task) -> str:
        """Return the fingerprint of what serves a task, its evaluation data and its metric."""
        if task.name not in self._known:
            rows = task.hashes[self._run.config.evaluation.split]
            state = self._run.learner.served_state(task.name)
            self._known[task.name] = self._fingerprinter.of(state, rows, task.spec.metric)
        return self._known[task.name]


def account(run: Run, index: int, fingerprints: ServedFingerprints) -> None:
    """Write the ledger row of task ``index``, and note what serves each task so far.

    Args:
        run: the run.
        index: position of the task that was just learned.
        fingerprints: of now.

    Raises:
        IsolationError: a learner that isolates its parameters changed what serves another task.
    """
    learner, record, tasks = run.learner, run.record, run.tasks[: index + 1]
    buffer = learner.buffer
    record.ledger.add(
        tasks[index].name,
        learner.num_trained(tasks[index]),
        count_stored(learner.stored_states(tasks)),
        (buffer.examples, buffer.nbytes) if buffer is not None else (0, 0),
        router_storage(run, tasks),
    )
    for task in tasks:
        now = fingerprints.of(task)
        if learner.tags.parameter_isolation and now != record.fingerprints.get(task.name, now):
            raise IsolationError(
                f"{learner.name} promises perfect memory, but learning "
                f"{tasks[index].name!r} changed what serves {task.name!r}"
            )
        record.fingerprints[task.name] = now


def router_storage(run: Run, tasks: Sequence[Task]) -> tuple[int, int]:
    """Return (numbers, bytes) that routing among ``tasks`` stores besides what serves them.

    Means, covariance, and what the learner does not keep of the pretrained encoder.
    """
    if run.routing is None:
        return 0, 0
    own = run.learner.stored_states(tasks)
    without, whole = count_stored(own), count_stored([*own, *run.routing.stored_states()])
    return whole[0] - without[0], whole[1] - without[1]


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
