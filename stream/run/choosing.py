"""Learning one task of a run that chooses: every candidate learns it, and the best is kept."""

import time
from dataclasses import dataclass

from stream.config.select import Candidate
from stream.data.task import Task
from stream.errors import TrainingDivergedError, first_line, require
from stream.evaluation.evaluate import evaluate
from stream.learners.base import Learner
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.report.progress import Display
from stream.run.interrupt import StopRequest
from stream.run.learning import save_within_task
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.training.engine import pick_engine
from stream.training.fit_state import Step
from stream.training.flops import FlopMeter, count_pass
from stream.training.loop import fit
from stream.training.snapshot import FitSnapshot

SPLIT = "validation"


def choose(
    run: Run, index: int, position: FitSnapshot | None, display: Display, stop: StopRequest
) -> None:
    """Let every candidate learn task ``index``, or what is left of that, and keep the best.

    The best has the highest score on validation rows; of equal ones it is the first.

    Args:
        run: the run.
        index: position of the task in the stream.
        position: where the candidate that is next stood; None from its start.
        display: what a person sees.
        stop: looked at after every step and every candidate.

    Raises:
        TrainingDivergedError: no candidate has a score.
        Interrupted: the run was asked to stop, and is saved.
    """
    learner, task = run.learner, run.tasks[index]
    assert isinstance(learner, Selecting)
    found = run.record.selection.setdefault(task.name, SelectionRecord())
    work = learner.workload(task, run.config.training)
    display.learning(index, task)
    for candidate in learner.candidates[len(found.candidates) :]:
        before = sum(tried.steps for tried in found.candidates)
        of = _Trial(run, index, candidate, display, stop, (before, work.steps))
        of.learn(position)
        position = None
        found.candidates.append(of.record)
        if found.best == len(found.candidates) - 1:
            learner.keep(of.learner.task_state(task.name))
            run.record.losses[task.name] = of.losses
        display.say(_told(task, of.record, len(found.candidates), len(learner.candidates)))
        if len(found.candidates) < len(learner.candidates):
            save_within_task(run, index, None, stop)
    best = found.best
    if best is None:
        reason = found.candidates[0].failed
        raise TrainingDivergedError(f"no candidate for task {task.name!r} has a score: {reason}")
    found.chosen = best
    learner.take(task, found.candidates[best].settings)
    _note(run, task, found)


@dataclass
class _Trial:
    """One candidate that learns one task.

    Attributes:
        run: the run.
        index: position of the task.
        candidate: what is tried.
        display: what a person sees.
        stop: looked at after every step.
        place: steps of earlier candidates, and of all.
    """

    run: Run
    index: int
    candidate: Candidate
    display: Display
    stop: StopRequest
    place: tuple[int, int]

    def __post_init__(self) -> None:
        """Make what learns."""
        selecting, seed = self.run.learner, self.candidate.seed(self.run.config.seed)
        assert isinstance(selecting, Selecting)
        self.learner: Learner = selecting.trial(self.candidate)
        settings, restart = self.candidate.settings, self.candidate.restart
        self.record = CandidateRecord(settings=settings, restart=restart, seed=seed)
        self.losses: list[float] = []
        counting = self.run.record.flops is not None
        self._meter = FlopMeter(self.learner.model) if counting else None

    def learn(self, position: FitSnapshot | None) -> None:
        """Learn the task and score it; what diverges has no score, and a reason."""
        run, task = self.run, self.run.tasks[self.index]
        began = time.perf_counter()
        if position is not None:
            self.record.steps, self.record.examples = len(position.losses), position.examples
            began -= position.seconds
        try:
            self._fit(task, position)
            cell = evaluate(
                self.learner, task, SPLIT, run.config.evaluation.batch_tokens, run.device
            )
        except TrainingDivergedError as error:
            self.record.failed = first_line(error)
            self.record.train_s = self.record.train_s or time.perf_counter() - began
            self.record.flops = None if self._meter is None else self._meter.total
            return
        self.record.score, self.record.score_s = cell.score, cell.seconds
        self.record.scored_examples = len(task.split(SPLIT))
        self.display.evaluated(self.record.scored_examples)

    def _fit(self, task: Task, position: FitSnapshot | None) -> None:
        """Learn the task, from its start or from where it stood."""
        run, training, learner = self.run, self.run.config.training, self.learner
        meter, size = self._meter, training.batch_size
        counting = meter is not None
        engine = pick_engine(training.engine, learner, run.device, size, counting=counting)
        report = fit(
            learner, task, training, self._on_step, engine=engine, meter=meter, resumed=position
        )
        require(
            not learner.shared_tensors,
            f"learner {learner.name} keeps tensors for the next task, so that its candidates "
            "cannot learn apart from each other; leave select out",
        )
        self.record.train_s, self.losses = report.seconds, report.losses
        if meter is not None:
            self.record.flops = meter.total
            self.record.one_pass = count_pass(learner, task, size, run.device)

    def _on_step(self, step: Step) -> None:
        """Count a step, show it, and save when it is time."""
        self.record.steps += 1
        self.record.examples += step.examples
        before, total = self.place
        self.display.step(before + step.number, total, step.examples)
        save_within_task(self.run, self.index, step, self.stop)


def _note(run: Run, task: Task, found: SelectionRecord) -> None:
    """Note what choosing took: the work of all candidates."""
    tried, record = found.candidates, run.record
    if record.flops is not None:
        one_pass = tried[found.chosen or 0].one_pass or 0
        passes = run.learner.workload(task, run.config.training).own_passes
        record.flops.add(sum(c.flops or 0 for c in tried), one_pass, passes)
    record.timing.select_s += sum(c.score_s for c in tried)
    record.timing.select_examples += sum(c.scored_examples for c in tried)
    record.timing.learned(
        sum(c.train_s for c in tried),
        sum(c.examples for c in tried),
        sum(c.steps for c in tried),
    )


def _told(task: Task, tried: CandidateRecord, number: int, total: int) -> str:
    """Say how a candidate did."""
    settings = ", ".join(f"{name}={value}" for name, value in tried.settings.items())
    start = f"{settings}, start {tried.restart + 1}".removeprefix(", ")
    score = tried.failed if tried.score is None else f"{100 * tried.score:.1f} on validation rows"
    return f"{task.spec.title}, candidate {number} of {total} ({start}): {score}"
