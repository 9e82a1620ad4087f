"""The run: tasks, learner, record and checkpoints of one learner on one stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.data.text_encoder import TextEncoder
from stream.distributed.world import World
from stream.errors import unknown
from stream.evaluation.evaluate import evaluate
from stream.evaluation.probe import Probe, sampled
from stream.evaluation.routed import Routing, State
from stream.learners.base import Learner
from stream.record.derived import Derivation
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.run.checkpoint_manager import CheckpointManager
from stream.training.engine import Engine, pick_engine
from stream.training.snapshot import FitSnapshot


@dataclass
class Run:
    """One learner on one stream; one that was loaded to serve has no data.

    Attributes:
        config: the whole configuration; ``config.learner`` is the learner.
        tasks: the stream, in order.
        learner: has begun the stream.
        device: where it learns and predicts.
        text_encoder: from texts to token ids.
        record: what the run has shown so far.
        checkpoints: what it needs to go on, on disk.
        routing: what infers tasks; None where they are known.
    """

    config: RunConfig
    tasks: Sequence[Task]
    learner: Learner
    device: torch.device
    text_encoder: TextEncoder
    record: RunRecord
    checkpoints: CheckpointManager
    routing: Routing | None = None

    @property
    def num_done(self) -> int:
        """How many tasks were learned and scored."""
        return self.record.score_matrix.rows_done()

    @cached_property
    def engine(self) -> Engine:
        """How training steps are executed."""
        training = self.config.training
        return pick_engine(
            training.engine,
            self.learner,
            self.device,
            World.now().rows_each(training.batch_size),
            counting=self.config.count_flops,
            recomputing=training.gradient_checkpointing,
        )

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
        return Derivation(sum(task.split("train").nbytes for task in self.tasks))

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
        settings = self.config.evaluation
        chosen = settings.split if split is None else split
        return evaluate(self.learner, task, chosen, settings.batch_tokens, self.device)

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

    def save(self, within: tuple[int, FitSnapshot | None] | None = None) -> bytes:
        """Write a checkpoint, unless none is wanted; return the record as it holds it, as JSON.

        Args:
            within: the task that is being learned, and where that stands (None between two of its
                candidates); None between tasks.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        self.update_record()
        encoded = self.record.encode()
        router = None if self.routing is None else self.routing.router
        self.checkpoints.save(self.learner, encoded, within, router)
        return encoded

    def update_record(self) -> None:
        """Bring up to date what the record derives from its cells."""
        self._derivation.update(self.record)
