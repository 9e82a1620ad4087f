"""The run: tasks, learner, record and checkpoints of one learner on one stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stream.data.task import Task
from stream.data.text_encoder import TextEncoder
from stream.errors import unknown
from stream.evaluation.probe import Probe, sampled
from stream.evaluation.routed import Routing, State
from stream.fingerprint import Fingerprinter
from stream.record.derived import Derivation
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.run.bench import Bench
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.stored import StoredCount
from stream.training.snapshot import FitSnapshot


@dataclass
class Run(Bench):
    """One learner on one stream; one that was loaded to serve has no data.

    Attributes:
        text_encoder: from texts to token ids.
        record: what the run has shown so far.
        checkpoints: what it needs to go on, on disk.
        routing: what infers tasks; None where they are known.
        stored: counts what the learner stores.
        lasting: the digests of tensors that learning never changes.
        elsewhere: measures a task on the run's split with workers; None measures here.
    """

    text_encoder: TextEncoder
    record: RunRecord
    checkpoints: CheckpointManager
    routing: Routing | None = None
    stored: StoredCount = field(default_factory=StoredCount)
    lasting: Fingerprinter = field(default_factory=Fingerprinter)
    elsewhere: Callable[[Task], Cell] | None = None

    @property
    def num_done(self) -> int:
        """How many tasks were learned and scored."""
        return self.record.score_matrix.rows_done()

    @cached_property
    def probe(self) -> Probe | None:
        """What scores tasks while one is learned, where that is wanted."""
        if self.record.probe is None:
            return None
        evaluation, rows = self.config.evaluation, self.config.probe.rows
        samples = [sampled(t, evaluation.split, rows, self.config.seed) for t in self.tasks]
        return Probe(evaluation, samples, self.record.probe)

    @cached_property
    def _derivation(self) -> Derivation:
        return Derivation()

    def task(self, name: str) -> Task:
        """Return a task of the stream.

        Raises:
            UserError: there is none of that name.
        """
        names = [task.name for task in self.tasks]
        if name not in names:
            raise unknown("task of this run", name, names)
        return self.tasks[names.index(name)]

    def measure(self, task: Task, split: str | None = None) -> Cell:
        """Evaluate one task now.

        Args:
            task: the task.
            split: what it is evaluated on; by default what the configuration says.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        if split is None and self.elsewhere is not None:
            return self.elsewhere(task)
        return self.measure_here(task, split or self.config.evaluation.split)

    def measure_routed(self, task: Task, learned: Sequence[Task], state: State) -> Cell:
        """Evaluate one learned task now, also with inferred tasks where the run infers them.

        Args:
            task: the task.
            learned: all tasks learned so far, in order.
            state: returns the fingerprint of what serves a task now.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        if self.routing is None or task.name not in [other.name for other in learned]:
            return self.measure(task)
        return self.routing.evaluate(task, self.config.evaluation.split, learned, state)

    def commit_row(self, index: int) -> None:
        """Write the row of task ``index``, which was learned, scored and accounted for.

        Rows are committed in the order of the stream.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        self.update_record(whole=False)
        router = None if self.routing is None else self.routing.router
        self.checkpoints.commit_row(self.learner, self.record, index, router)

    def save(self, within: tuple[int, FitSnapshot | None]) -> None:
        """Write a checkpoint within a task, unless none is wanted.

        Args:
            within: the task that is being learned, and where that stands (None between two of its
                candidates).

        Raises:
            OSError: the disk is full or cannot be written.
        """
        router = None if self.routing is None else self.routing.router
        self.checkpoints.save(self.learner, self.record, within, router)

    def update_record(self, *, whole: bool = True) -> None:
        """Bring up to date what the record derives from its rows; ``whole`` is every metric."""
        self._derivation.update(self.record, whole=whole)
