"""Learning one task on a bench, as the learner is or as a candidate; nothing is written or shown.

A run and its workers learn through this alone.
"""

import time
from collections.abc import Callable

import msgspec
import torch

from stream.config.select import Candidate
from stream.data.task import Task
from stream.errors import TrainingDivergedError, first_line, require
from stream.evaluation.evaluate import evaluate
from stream.learners.base import Learner
from stream.record.matrix import Cell
from stream.record.selection import CandidateRecord
from stream.run.bench import Bench
from stream.run.selecting import Selecting
from stream.training.captured import Captured
from stream.training.engine import Engine, pick_engine
from stream.training.fit_state import FitReport, Step
from stream.training.flops import FlopMeter, count_pass
from stream.training.loop import fit
from stream.training.snapshot import FitSnapshot

SPLIT = "validation"
"""What candidates are compared on."""
OnStep = Callable[[Step], None]


class Fitted(msgspec.Struct):
    """What learning a task took.

    Attributes:
        report: steps, examples, seconds and losses.
        flops: operations spent; 0 where they are not counted.
        one_pass: operations of one pass over its training rows; 0 where they are not counted.
    """

    report: FitReport
    flops: int = 0
    one_pass: int = 0


def fit_task(
    bench: Bench, index: int, on_step: OnStep, position: FitSnapshot | None = None
) -> Fitted:
    """Let the learner learn a task, or what is left of it.

    Args:
        bench: the learner and the tasks.
        index: position of the task in the stream.
        on_step: called after every step.
        position: where an earlier attempt at the task stood; None from its start.

    Raises:
        TrainingDivergedError: a loss that is not finite.
    """
    learner, task, training = bench.learner, bench.tasks[index], bench.config.training
    meter = FlopMeter(learner.model) if bench.config.count_flops else None
    report = fit(
        learner, task, training, on_step, engine=bench.engine, meter=meter, resumed=position
    )
    spent = 0 if meter is None else meter.total
    # What was learned without a step (joint training's later tasks) has no pass to count.
    size = training.batch_size
    one_pass = count_pass(learner, task, size, bench.device) if spent else 0
    return Fitted(report, spent, one_pass)


class Trial:
    """One candidate that learns one task.

    Attributes:
        learner: what learns.
        record: how it did.
        losses: of every step; empty if it failed.
    """

    def __init__(self, bench: Bench, index: int, candidate: Candidate):
        """Take what learned an earlier task as this candidate, or make it.

        Args:
            bench: its learner chooses.
            index: position of the task in the stream.
            candidate: what is tried.
        """
        selecting, seed = bench.learner, candidate.seed(bench.config.seed)
        assert isinstance(selecting, Selecting)
        self._bench, self._task, self._selecting = bench, bench.tasks[index], selecting
        self._number = selecting.candidates.index(candidate)
        waiting = selecting.waiting.pop(self._number, None)
        self.learner, self._engine = waiting or self._made(candidate)
        settings, restart = candidate.settings, candidate.restart
        self.record = CandidateRecord(settings=settings, restart=restart, seed=seed)
        self.losses: list[float] = []
        self._meter = FlopMeter(self.learner.model) if bench.config.count_flops else None

    def _made(self, candidate: Candidate) -> tuple[Learner, Engine]:
        """Return a learner that has learned nothing, and how it executes its steps."""
        config, learner = self._bench.config, self._selecting.trial(candidate)
        wanted, size = config.training.engine, config.training.batch_size
        counting = config.count_flops
        return learner, pick_engine(wanted, learner, self._bench.device, size, counting=counting)

    def close(self) -> None:
        """Forget the task, and wait for the next one where there is room; or give all back.

        What was learned must have been taken from the learner before.
        """
        if self.record.score is not None and keeps_graphs(self._engine):
            self.learner.forget(self._task)
            self._selecting.waiting[self._number] = self.learner, self._engine
        else:
            self._engine.close()

    def learn(self, on_step: OnStep, position: FitSnapshot | None = None) -> None:
        """Learn the task and score it; what diverges has no score, and a reason.

        Args:
            on_step: called after every step.
            position: where an earlier attempt stood; None from its start.
        """
        began = time.perf_counter()
        if position is not None:
            self.record.steps, self.record.examples = len(position.losses), position.examples
            began -= position.seconds
        try:
            self._fit(self._task, on_step, position)
            cell = self._score()
        except TrainingDivergedError as error:
            self.record.failed = first_line(error)
            self.record.train_s = self.record.train_s or time.perf_counter() - began
            self.record.flops = None if self._meter is None else self._meter.total
            return
        self.record.score, self.record.score_s = cell.score, cell.seconds
        self.record.scored_examples = len(self._task.split(SPLIT))

    def _score(self) -> Cell:
        """Evaluate the task on the rows that choose."""
        bench = self._bench
        tokens = bench.config.evaluation.batch_tokens
        return evaluate(self.learner, self._task, SPLIT, tokens, bench.device)

    def _fit(self, task: Task, on_step: OnStep, position: FitSnapshot | None) -> None:
        """Learn the task, from its start or from where it stood."""
        bench, training, learner = self._bench, self._bench.config.training, self.learner
        meter = self._meter

        def counted(step: Step) -> None:
            self.record.steps += 1
            self.record.examples += step.examples
            on_step(step)

        report = fit(
            learner, task, training, counted, engine=self._engine, meter=meter, resumed=position
        )
        require(
            not learner.shared_tensors,
            f"learner {learner.name} keeps tensors for the next task, so that its candidates "
            "cannot learn apart from each other; leave select out",
        )
        self.record.train_s, self.losses = report.seconds, report.losses
        if meter is not None:
            self.record.flops = meter.total
            size = training.batch_size
            self.record.one_pass = count_pass(learner, task, size, bench.device)


def keeps_graphs(engine: Engine) -> bool:
    """Whether graphs are there, and half of the GPU's memory is free for those of others.

    To capture them anew, task by task, takes longer than to learn a short task.
    """
    if not isinstance(engine, Captured) or engine.refused:
        return False
    free, total = torch.cuda.mem_get_info()
    return 2 * free > total
