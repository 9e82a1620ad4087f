"""The stream: learn task k, score tasks 1..k, account, save, show; then the next task."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from stream.config.run import RunConfig
from stream.distributed.world import World
from stream.errors import UserError
from stream.evaluation.majority import majority_scores
from stream.record.run_record import RunRecord
from stream.report.drawing import Draw, draw_here, write_figures
from stream.report.progress import Display
from stream.report.tracking import Tracker
from stream.run.accounting import ServedFingerprints, account
from stream.run.ahead import Ahead
from stream.run.choosing import choose
from stream.run.coordinator import Coordinator, Learns
from stream.run.engines import drawers_beside, engine_of, place_with
from stream.run.interrupt import StopRequest, stop_requests
from stream.run.learning import learn, learn_routes
from stream.run.ranks import check_same, stop_together
from stream.run.resume import check_unchanged, restore_weights
from stream.run.run import Run
from stream.run.scoring import probe_row, score_row, score_untrained
from stream.run.setup import build_run
from stream.training.snapshot import FitSnapshot
from stream.workers.engine import Engine


def run_stream(
    config: RunConfig,
    folder: Path,
    *,
    tracker: Tracker,
    display: Display,
    resume: bool = False,
    overrides: Sequence[str] | None = None,
) -> RunRecord:
    """Run one learner over one stream.

    Args:
        config: the whole configuration; ``config.learner`` is the learner.
        folder: the run folder; results.json and the figures are written there.
        tracker: opened by the caller, so that it is closed whatever happens.
        display: what a person sees.
        resume: go on from the folder's last checkpoint.
        overrides: what the command line gave, for the record.

    Returns:
        The record, as in results.json.

    Raises:
        UserError: something asked for is not there or makes no sense.
        TrainingDivergedError: a loss that is not finite; the rows so far are in results.json.
        Interrupted: a signal asked to stop; what was done is saved.
    """
    with stop_requests() as stop, _rows_summed_up(folder), _hired(config, display) as hired:
        stop.saved = resume
        stop_together(stop)
        started = time.perf_counter()
        run = build_run(config, folder, display.preparing, place=place_with(config, hired.engine))
        check_same(run)
        run.record.overrides = None if overrides is None else list(overrides)
        workers = hired.coordinator(run, folder, display, stop)
        how = (workers or run).how()
        position = _go_on(run, folder, display, stop) if resume else _begin(run)
        run.record.timing.prepare_s += time.perf_counter() - started
        run.record.majority = majority_scores(run.tasks, config.evaluation.split)
        run.update_record()
        run.record.write(folder)
        stop.saved = config.checkpoint.enabled
        display.stage(f"opening the tracker ({config.tracking.name})")
        tracker.start(folder, run.record)
        display.start(config, run.tasks, run.num_done)
        display.say(how)
        learns = _alone(config) if workers is None else workers.begin(position)
        if config.evaluation.baseline and run.record.baseline is None:
            run.record.baseline = score_untrained(run, run.tasks, display, stop)
            run.record.write(folder)
        for index in range(run.num_done, len(run.tasks)):
            learns(run, index, position, display, stop)
            position = None
            _make_row(run, index, tracker, display)
            if index + 1 < len(run.tasks):
                # Not before the row is saved: scoring is short beside learning.
                stop.check_together()
        figures = _finish(run, folder, draw_here if workers is None else workers.draw, display)
        display.stage(f"closing the tracker ({config.tracking.name})")
        tracker.finish(run.record, figures)
        display.finish(run.record, folder)
    return run.record


@contextmanager
def _rows_summed_up(folder: Path) -> Iterator[None]:
    """Have results.json hold all rows whatever stops the run inside the block, if Python sees it.

    Where nothing can be written any more, rows.jsonl has them alone.
    """
    try:
        yield
    except BaseException:
        with suppress(OSError, UserError, MemoryError):
            RunRecord.sum_up(folder)
        raise


class _Hired(NamedTuple):
    """The processes of a run besides this one; None where there are none.

    Attributes:
        engine: the workers, which learn and measure.
        drawers: what draws figures; None where the workers do.
    """

    engine: Engine | None = None
    drawers: Engine | None = None

    def coordinator(
        self, run: Run, folder: Path, display: Display, stop: StopRequest
    ) -> Coordinator | None:
        """Return what hands out the work of a run; None without workers."""
        if self.engine is None:
            return None
        return Coordinator(self.engine, run, folder, display, stop, self.drawers)


@contextmanager
def _hired(config: RunConfig, display: Display) -> Iterator[_Hired]:
    """Have the workers of a run inside the block, if it has any."""
    if config.workers.used:
        display.stage(f"starting {config.workers.count} workers ({config.workers.engine})")
    engine = engine_of(config)
    drawers = drawers_beside(engine) if engine is not None and config.figures else None
    with engine or nullcontext(), drawers or nullcontext():
        yield _Hired(engine, drawers)


def _make_row(run: Run, index: int, tracker: Tracker, display: Display) -> None:
    """Score the tasks after task ``index``, which was just learned, account, save, show."""
    learn_routes(run, index)
    fingerprints = ServedFingerprints(run, index)
    score_row(run, index, fingerprints, display)
    account(run, index, fingerprints)
    if run.record.linear_probe is not None:
        display.stage("training linear probes")
        probe_row(run, index)
    run.commit_row(index)
    tracker.row(index, run.record)
    display.row(index, run.record)


def _begin(run: Run) -> None:
    """Begin with the first task, and no row."""
    run.checkpoints.begin()


def _alone(config: RunConfig) -> Learns:
    """Return what learns a task without workers."""
    return learn if config.select is None else choose


def _go_on(run: Run, folder: Path, display: Display, stop: StopRequest) -> FitSnapshot | None:
    """Take over the last whole checkpoint; return where learning the next task stood in it.

    Raises:
        UserError: tasks were learned and there is no checkpoint of them, or none that fits.
    """
    saved = run.checkpoints.latest()
    check_unchanged(run, folder, saved)
    if saved is None:
        return _begin(run)
    run.record.take_over(saved.record, saved.rows)
    if run.record.baseline is not None and run.config.evaluation.baseline:
        # Tasks that are new get their baseline before anything learned comes back.
        added = run.tasks[len(saved.record.order) :]
        run.record.baseline += score_untrained(run, added, display, stop)
    restore_weights(run, saved)
    run.checkpoints.go_on(saved)
    return run.checkpoints.position(saved)


def _finish(run: Run, folder: Path, draw: Draw, display: Display) -> list[Path]:
    """Draw the figures, if they are wanted, and say that the run is complete; return them."""
    run.update_record()
    run.record.status = "complete"
    # Figures first, so that a run is complete on disk when everything is there.
    figures: list[Path] = []
    if run.config.figures and World.now().is_first:
        display.stage("drawing figures")
        figures = write_figures(run.record, folder, draw)
    Ahead(folder, enabled=True).clear()
    run.record.write(folder)
    return figures
