"""The stream: learn task k, score tasks 1..k, account, write, show; then the next task."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.errors import IsolationError
from stream.evaluation.evaluate import evaluate
from stream.evaluation.probe import Probe, sampled
from stream.fingerprint import Fingerprinter
from stream.record.matrix import Cell, ScoreMatrix
from stream.record.run_record import RunRecord
from stream.report import plots
from stream.report.progress import Display
from stream.report.tracking import Tracker
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.interrupt import StopRequest, stop_requests
from stream.run.live_record import Record, write_texts
from stream.run.setup import Parts, assemble, pick_precision
from stream.training.engine import pick_engine
from stream.training.fit_state import Step
from stream.training.flops import FlopMeter, FlopRecord, count_pass
from stream.training.loop import fit
from stream.training.snapshot import FitSnapshot


def run_stream(
    config: RunConfig,
    folder: Path,
    *,
    tracker: Tracker,
    display: Display,
    resume: bool = False,
) -> dict[str, Any]:
    """Run one learner over one stream.

    Args:
        config: the whole configuration; ``config.learner`` is the learner.
        folder: the run folder; results.json and the figures are written there.
        tracker: opened by the caller, so that it is closed whatever happens.
        display: what a person sees.
        resume: go on from the folder's last checkpoint.

    Returns:
        The values of results.json.

    Raises:
        UserError: something asked for is not there or makes no sense.
        TrainingDivergedError: a loss that is not finite; the rows so far are in results.json.
        Interrupted: a signal asked to stop; what was done is saved.
    """
    with stop_requests() as stop:
        return _run(config, folder, tracker, display, stop=stop, resume=resume)


def _run(
    config: RunConfig,
    folder: Path,
    tracker: Tracker,
    display: Display,
    *,
    stop: StopRequest,
    resume: bool,
) -> dict[str, Any]:
    """Run the stream, from the start or from its last checkpoint."""
    started = time.perf_counter()
    parts = assemble(config, display.reading, display.loading)
    matrix = ScoreMatrix([task.name for task in parts.tasks])
    record = Record(config, parts.tasks, parts.leaks, str(parts.device), matrix, parts.ledger)
    keeper = CheckpointManager(folder, config.checkpoint, parts, record, stop)
    stream = _Stream(config, parts, record, display, keeper)
    training = None
    if resume:
        # Tasks that are new since then get their baseline before anything learned comes back.
        added = stream.untrained_scores(keeper.added_tasks()) if config.evaluation.baseline else []
        training = keeper.restore()
        if record.baseline is not None:
            record.baseline += added
    first = record.matrix.rows_done()
    record.timing.prepare_s += time.perf_counter() - started
    record.status = "partial"
    tracker.start(folder, record.write(folder))
    display.start(config, parts.tasks, first)
    display.say(stream.how)
    if config.evaluation.baseline and record.baseline is None:
        stream.score_untrained()
    for index in range(first, len(parts.tasks)):
        stream.learn(index, training if index == first else None)
        stream.score_row(index)
        stream.account(index)
        results = record.as_json()
        texts = record.texts(results)
        keeper.save(texts)  # first: results.json is never ahead of what can be gone on from
        write_texts(folder, texts)
        tracker.row(index, results)
        display.row(index, results)
        if index + 1 < len(parts.tasks):
            keeper.check_stop()  # not before the row is saved: scoring is short beside learning
    record.status = "complete"
    # First, so that a run is complete on disk when everything is there.
    figures = plots.write_figures(msgspec.convert(record.as_json(), RunRecord), folder)
    results = record.write(folder)
    tracker.finish(results, figures)
    display.finish(results, folder)
    return results


class _Stream:
    """The steps of one task, on one run's objects."""

    def __init__(
        self,
        config: RunConfig,
        parts: Parts,
        record: Record,
        display: Display,
        keeper: CheckpointManager,
    ):
        self._config = config
        self._keeper = keeper
        self._learner = parts.learner
        self._device = parts.device
        self._record = record
        self._display = display
        self._engine = pick_engine(
            config.training.engine,
            parts.learner,
            parts.device,
            config.training.batch_size,
            counting=config.count_flops,
        )
        precision = pick_precision(config.backbone.precision, parts.device)
        self.how = f"training steps: {self._engine}; the encoder computes in {precision}"
        self._fingerprinter, self._fingerprints = Fingerprinter(), dict[str, str]()
        if config.probe.every is not None:
            split, rows = config.evaluation.split, config.probe.rows
            samples = [sampled(task, split, rows, config.seed) for task in parts.tasks]
            record.probe = Probe(config.probe, config.evaluation, samples)
        if config.count_flops:
            record.flops = FlopRecord()

    def _measure(self, task: Task) -> Cell:
        """Evaluate one task for real."""
        settings = self._config.evaluation
        cell = evaluate(self._learner, task, settings.split, settings.batch_tokens, self._device)
        self._display.evaluated(len(task.split(settings.split)))
        return cell

    def score_untrained(self) -> None:
        """Score the untrained learner on every task."""
        self._record.baseline = self.untrained_scores(self._record.tasks)

    def untrained_scores(self, tasks: Sequence[Task]) -> list[float]:
        """Return the scores of the untrained learner."""
        self._display.stage("scoring the untrained learner")
        cells = []
        for task in tasks:
            self._keeper.check_stop()
            cells.append(self._measure(task))
        self._record.timing.baseline_s += sum(cell.seconds for cell in cells)
        return [cell.score for cell in cells]

    def learn(self, index: int, resumed: FitSnapshot | None) -> None:
        """Let the learner learn task ``index``, or what is left of it."""
        task, training = self._record.tasks[index], self._config.training
        self._display.learning(index, task)
        flops = self._record.flops
        meter = None if flops is None else FlopMeter(self._learner.model)
        if resumed is None:
            self._look(index, 0, 1)

        def on_step(step: Step) -> None:
            self._display.step(step.number, step.total, step.examples)
            self._look(index, step.number, step.total)
            self._keeper.after_step(index, step)

        report = fit(
            self._learner,
            task,
            training,
            on_step,
            engine=self._engine,
            meter=meter,
            resumed=resumed,
        )
        if flops is not None and meter is not None:
            spent, size = meter.total, training.batch_size
            # What was learned without a step (joint training's later tasks) has no pass to count.
            one_pass = count_pass(self._learner, task, size, self._device) if spent else 0
            flops.add(spent, one_pass, self._learner.workload(task, training).own_passes)
        self._record.losses[task.name] = report.losses
        timing = self._record.timing
        timing.train_s.append(report.seconds)
        timing.train_examples.append(report.examples)
        timing.steps.append(report.steps)

    def _look(self, index: int, step: int, steps: int) -> None:
        """Probe the tasks up to ``index`` if it is time."""
        probe = self._record.probe
        if probe is not None and probe.is_due(step, steps):
            self._display.evaluated(probe.look(self._learner, index, step, self._device))

    def score_row(self, index: int) -> None:
        """Score every task learned so far; with ``evaluation.unseen`` those to come as well."""
        settings, timing = self._config.evaluation, self._record.timing
        tasks = self._record.tasks if settings.unseen else self._record.tasks[: index + 1]
        self._display.evaluating(index, len(tasks))
        self._fingerprinter, self._fingerprints = Fingerprinter(), {}
        cells = [self._cell(task, last=index == len(self._record.tasks) - 1) for task in tasks]
        for position, cell in enumerate(cells):
            self._record.matrix.record(index, position, cell)
        timing.evaluate_s.append(sum(cell.seconds for cell in cells))
        timing.evaluate_examples.append(sum(len(task.split(settings.split)) for task in tasks))

    def _cell(self, task: Task, *, last: bool) -> Cell:
        """Measure a task, or with ``evaluation.reuse`` take the cell of an equal fingerprint."""
        reuse, before = self._config.evaluation.reuse, self._record.fingerprints.get(task.name)
        if reuse == "off" or before is None or self._fingerprint(task) != before:
            return self._measure(task)
        known = self._record.matrix.last(task.name)
        if reuse == "verify" and last:
            measured = self._measure(task)
            if measured.digest != known.digest:
                raise IsolationError(
                    f"{task.name!r} was served with the same tensors and gives other logits"
                )
            return measured
        self._display.evaluated(len(task.split(self._config.evaluation.split)))
        return replace(known, state="reused", seconds=0.0)

    def account(self, index: int) -> None:
        """Write the ledger row, and check that isolated learners kept earlier tasks untouched."""
        tasks = self._record.tasks[: index + 1]
        buffer = self._learner.buffer
        self._record.ledger.add(
            tasks[index].name,
            self._learner.num_trained(tasks[index]),
            self._learner.stored_states(tasks),
            (buffer.examples, buffer.nbytes) if buffer is not None else (0, 0),
        )
        for task in tasks:
            now = self._fingerprint(task)
            before = self._record.fingerprints.get(task.name, now)
            if self._learner.tags.parameter_isolation and now != before:
                raise IsolationError(
                    f"{self._learner.name} promises perfect memory, but learning "
                    f"{tasks[index].name!r} changed what serves {task.name!r}"
                )
            self._record.fingerprints[task.name] = now

    def _fingerprint(self, task: Task) -> str:
        """Return the fingerprint of what serves a task now, its evaluation data and its metric."""
        if task.name not in self._fingerprints:
            rows = task.hashes[self._config.evaluation.split]
            state = self._learner.served_state(task.name)
            found = self._fingerprinter.of(state, rows, task.spec.metric)
            self._fingerprints[task.name] = found
        return self._fingerprints[task.name]
