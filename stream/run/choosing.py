"""Learning one task of a run that chooses: every candidate learns it, and the best is kept."""

from collections.abc import Callable

from stream.data.task import Task
from stream.errors import TrainingDivergedError
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.report.progress import Display
from stream.run.fitting import Trial
from stream.run.interrupt import StopRequest
from stream.run.learning import save_within_task
from stream.run.run import Run
from stream.run.selecting import Selecting, Tensors
from stream.training.fit_state import Step
from stream.training.snapshot import FitSnapshot


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

        def on_step(step: Step, before: int = before) -> None:
            display.step(before + step.number, work.steps, step.examples)
            save_within_task(run, index, step, stop)

        trial = Trial(run, index, candidate)
        trial.learn(on_step, position)
        position = None
        display.evaluated(trial.record.scored_examples)
        state = trial.learner.task_state if trial.record.score is not None else None
        note_candidate(run, task, trial.record, trial.losses, state, display)
        trial.close()
        if len(found.candidates) < len(learner.candidates):
            save_within_task(run, index, None, stop)
    take_best(run, task)


def note_candidate(
    run: Run,
    task: Task,
    tried: CandidateRecord,
    losses: list[float],
    state: Callable[[str], Tensors] | None,
    display: Display,
) -> None:
    """Note how a candidate did, and keep what it learned if it is the best so far.

    Args:
        run: the run, which chooses.
        task: what it learned.
        tried: how it did.
        losses: of its steps.
        state: returns what it learned of a task; None if it failed.
        display: what a person sees.
    """
    learner, found = run.learner, run.record.selection.setdefault(task.name, SelectionRecord())
    assert isinstance(learner, Selecting)
    found.candidates.append(tried)
    if found.best == len(found.candidates) - 1:
        assert state is not None
        learner.keep(state(task.name))
        run.record.losses[task.name] = losses
    display.say(_told(task, tried, len(found.candidates), len(learner.candidates)))


def take_best(run: Run, task: Task) -> None:
    """Serve a task with the best of its candidates from now on.

    Raises:
        TrainingDivergedError: no candidate has a score.
    """
    learner, found = run.learner, run.record.selection[task.name]
    assert isinstance(learner, Selecting)
    best = found.best
    if best is None:
        reason = found.candidates[0].failed
        raise TrainingDivergedError(f"no candidate for task {task.name!r} has a score: {reason}")
    found.chosen = best
    learner.take(task, found.candidates[best].settings)
    _note(run, task, found)


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
