"""Learning one task of a run: probed, counted, and saved on the way."""

from stream.report.progress import Display
from stream.run.fitting import Fitted, fit_task
from stream.run.interrupt import StopRequest
from stream.run.run import Run
from stream.training.fit_state import Step
from stream.training.snapshot import FitSnapshot


def learn(
    run: Run, index: int, position: FitSnapshot | None, display: Display, stop: StopRequest
) -> None:
    """Let the learner learn task ``index``, or what is left of it.

    Args:
        run: the run.
        index: position of the task in the stream.
        position: where an earlier attempt at the task stood; None from its start.
        display: what a person sees.
        stop: looked at after every step.

    Raises:
        TrainingDivergedError: a loss that is not finite.
        Interrupted: the run was asked to stop, and is saved.
    """
    task = run.tasks[index]
    display.learning(index, task)
    if position is None:
        _look(run, index, 0, 1, display)

    def on_step(step: Step) -> None:
        display.step(step.number, step.total, step.examples)
        _look(run, index, step.number, step.total, display)
        save_within_task(run, index, step, stop)

    note_learned(run, index, fit_task(run, index, on_step, position))


def learn_routes(run: Run, index: int) -> None:
    """Let the router, where there is one, learn task ``index`` too."""
    if run.routing is not None and run.record.routing is not None:
        run.record.routing.learn_s.append(run.routing.learn(run.tasks[index]))


def _look(run: Run, index: int, step: int, steps: int, display: Display) -> None:
    """Probe the tasks up to ``index`` if it is time."""
    if run.probe is not None and run.probe.is_due(step, steps):
        display.evaluated(run.probe.look(run.learner, index, step, run.device))


def save_within_task(run: Run, index: int, step: Step | None, stop: StopRequest) -> None:
    """Save within a task when it is time, or when the run was asked to stop.

    Args:
        run: the run.
        index: position of the task.
        step: the step that is done; None between two candidates, where it is always time.
        stop: the request.

    Raises:
        Interrupted: the run was asked to stop, and is saved.
    """
    stop.agree(None if step is None else step.number)
    every = run.config.checkpoint.every
    due = step is None or (every is not None and step.number % every == 0)
    if due or stop.signum is not None:
        run.save((index, None if step is None else step.save()))
    stop.check()


def note_learned(run: Run, index: int, fitted: Fitted) -> None:
    """Note what learning a task took.

    Args:
        run: the run.
        index: position of the task.
        fitted: what it took.
    """
    task, record, report = run.tasks[index], run.record, fitted.report
    if record.flops is not None:
        passes = run.learner.workload(task, run.config.training).own_passes
        record.flops.add(fitted.flops, fitted.one_pass, passes)
    record.losses[task.name] = report.losses
    if report.refused:
        record.eager[task.name] = report.refused
    record.timing.learned(report.seconds, report.examples, report.steps)
