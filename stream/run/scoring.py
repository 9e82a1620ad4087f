"""Scores of a run: the row of the matrix after each task, and those of the untrained learner."""

from collections.abc import Sequence

from stream.data.task import Task
from stream.errors import IsolationError
from stream.evaluation import linear_probe
from stream.record.matrix import REUSED, Cell
from stream.report.progress import Display
from stream.run.accounting import ServedFingerprints
from stream.run.interrupt import StopRequest
from stream.run.run import Run


def score_untrained(
    run: Run, tasks: Sequence[Task], display: Display, stop: StopRequest
) -> list[float]:
    """Return the scores of the untrained learner.

    Args:
        run: the run, nothing of which was learned or loaded yet.
        tasks: what is scored.
        display: what a person sees.
        stop: looked at before each task.

    Raises:
        Interrupted: the run was asked to stop.
    """
    display.stage("scoring the untrained learner")
    cells = []
    for task in tasks:
        stop.check_together()
        cells.append(_measured(run, task, display))
    run.record.timing.baseline_s += sum(cell.seconds for cell in cells)
    return [cell.score for cell in cells]


def score_row(run: Run, index: int, fingerprints: ServedFingerprints, display: Display) -> None:
    """Score every task learned so far; with ``evaluation.unseen`` those to come as well.

    Args:
        run: the run.
        index: position of the task that was just learned.
        fingerprints: of now.
        display: what a person sees.

    Raises:
        IsolationError: a cell with an equal fingerprint was measured again and differs.
    """
    settings, matrix = run.config.evaluation, run.record.score_matrix
    tasks = run.tasks if settings.unseen else run.tasks[: index + 1]
    display.evaluating(index, len(tasks))
    sizes = [len(task.split(settings.split)) for task in tasks]
    cells = [_cell(run, (index, on), fingerprints, display) for on in range(len(tasks))]
    for position, cell in enumerate(cells):
        matrix.record(index, position, cell)
    # In one go: there may be hundreds, which take no time.
    pairs = zip(cells, sizes, strict=True)
    display.evaluated(sum(size for cell, size in pairs if cell.state == REUSED))
    examples = sum(sizes)
    run.record.timing.evaluated(sum(cell.seconds for cell in cells), examples)


def probe_row(run: Run, index: int) -> None:
    """Train the linear probes that are due after task ``index``."""
    record, settings = run.record.linear_probe, run.config.evaluation
    assert record is not None
    linear_probe.probe_row(run.learner, run.tasks, index, settings, run.device, record)


def _cell(
    run: Run, place: tuple[int, int], fingerprints: ServedFingerprints, display: Display
) -> Cell:
    """Measure a task, or with ``evaluation.reuse`` take the cell of an equal fingerprint.

    Where tasks are inferred, among those learned so far, every cell is measured.

    Args:
        run: the run.
        place: positions of the task that was just learned, and of the task that is scored.
        fingerprints: of now.
        display: told what was measured.
    """
    index, on = place
    task = run.tasks[on]
    settings, before = run.config.evaluation, run.record.fingerprints.get(task.name)
    if run.routing is not None:
        cell = run.measure_routed(task, run.tasks[: index + 1], fingerprints.of)
        display.evaluated(len(task.split(settings.split)))
        return cell
    if settings.reuse == "off" or before is None or fingerprints.of(task) != before:
        return _measured(run, task, display)
    known = run.record.score_matrix.above(index, on)
    assert known is not None, "what has a fingerprint was scored in the row that noted it"
    if settings.reuse == "verify" and index == len(run.tasks) - 1:
        measured = _measured(run, task, display)
        if measured.digest != known.digest:
            raise IsolationError(
                f"{task.name!r} was served with the same tensors and gives other logits"
            )
        return measured
    return known.reused()


def _measured(run: Run, task: Task, display: Display) -> Cell:
    """Evaluate one task for real, and show it."""
    cell = run.measure(task)
    display.evaluated(len(task.split(run.config.evaluation.split)))
    return cell
