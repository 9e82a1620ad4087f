"""After a task: what is stored now, and whether what serves earlier tasks is untouched."""

from collections.abc import Sequence

from stream.data.task import Task
from stream.errors import IsolationError
from stream.fingerprint import Fingerprinter, fingerprint
from stream.run.run import Run
from stream.run.stored import count_stored
from stream.seeding import numpy_generator


class ServedFingerprints:
    """Fingerprints of what serves the tasks of a run at one moment, each computed once.

    Use a new one after anything was trained.
    """

    def __init__(self, run: Run, after: int | None = None):
        """Look at a run as it is now.

        Args:
            run: the run.
            after: position of the task that was just learned. Of a learner with parameter isolation
                the fingerprints of earlier ones are then those of the record, but for one task,
                another one every time; after the last task all are computed. None computes all.
        """
        self._run = run
        self._known: dict[str, str] = {}
        self._fingerprinter = Fingerprinter()
        self._trusts = (
            after is not None
            and after + 1 < len(run.tasks)
            and run.learner.tags.parameter_isolation
        )
        learned = run.tasks if after is None else run.tasks[: after + 1]
        self.looked_at: Sequence[Task] = learned
        """The learned tasks whose fingerprints are computed."""
        if self._trusts and after is not None:
            newest = run.tasks[after]
            generator = numpy_generator(run.config.seed, "looked at again", newest.name)
            earlier = [run.tasks[int(generator.integers(after))]] if after else []
            self.looked_at = [*earlier, newest]

    def of(self, task: Task) -> str:
        """Return the fingerprint of what serves a task, its evaluation data and its metric."""
        if task.name not in self._known:
            self._known[task.name] = self._recorded(task) or self._computed(task)
        return self._known[task.name]

    def _recorded(self, task: Task) -> str | None:
        """Return the fingerprint in the record, where that is to be trusted."""
        trusted = self._trusts and all(task.name != looked.name for looked in self.looked_at)
        return self._run.record.fingerprints.get(task.name) if trusted else None

    def _computed(self, task: Task) -> str:
        """Return the fingerprint of the tensors as they are."""
        run, learner = self._run, self._run.learner
        state = learner.served_state(task.name)
        # What no task owns never changes, so that its digests are kept from row to row.
        own = learner.task_state(task.name) if self._trusts else state
        digests = self._fingerprinter.digests({n: t for n, t in state.items() if n in own})
        digests |= run.lasting.digests({n: t for n, t in state.items() if n not in own})
        return fingerprint(digests, task.hashes[run.config.evaluation.split], task.spec.metric)


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
    stored = run.stored.of(learner, tasks)
    if len(tasks) == len(run.tasks):
        assert stored == count_stored(learner.stored_states(tasks)), "tasks own no tensor together"
    record.ledger.add(
        tasks[index].name,
        learner.num_trained(tasks[index]),
        stored,
        (buffer.examples, buffer.nbytes) if buffer is not None else (0, 0),
        router_storage(run, tasks),
    )
    for task in fingerprints.looked_at:
        now = fingerprints.of(task)
        if learner.tags.parameter_isolation and now != record.fingerprints.get(task.name, now):
            raise IsolationError(
                f"{learner.name} promises perfect memory, but what serves {task.name!r} is not "
                f"what it was; the task learned last is {tasks[index].name!r}"
            )
        record.fingerprints[task.name] = now


def router_storage(run: Run, tasks: Sequence[Task]) -> tuple[int, int]:
    """Return (numbers, bytes) that routing among ``tasks`` stores besides what serves them.

    Means, covariance, and what the learner does not keep of the pretrained encoder.
    """
    if run.routing is None:
        return 0, 0
    # A router reads nothing that a task owns alone.
    own = run.learner.stored_states(tasks[-1:] if run.learner.tags.parameter_isolation else tasks)
    without, whole = count_stored(own), count_stored([*own, *run.routing.stored_states()])
    return whole[0] - without[0], whole[1] - without[1]
