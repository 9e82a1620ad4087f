"""The stream: learn task k, score tasks 1..k, account, write, show; then the next task."""

import time
from pathlib import Path
from typing import Any

import torch

from stream import plots
from stream.config import RunConfig
from stream.display import Display
from stream.errors import IsolationError, choose, require
from stream.evaluation import evaluate
from stream.fingerprint import Fingerprinter
from stream.learners.base import Learner
from stream.ledger import Ledger
from stream.locate import cache_folder, tokenizer_location
from stream.matrix import Cell, ScoreMatrix
from stream.models.encoder import load_encoder
from stream.models.heads import TaskModel
from stream.results import Record
from stream.tasks.encode import TextEncoder
from stream.tasks.sequence import build_tasks
from stream.tasks.task import Task
from stream.tracking import Tracker
from stream.training import fit


def run_stream(
    config: RunConfig, folder: Path, *, tracker: Tracker, display: Display
) -> dict[str, Any]:
    """Run one learner over one stream.

    Args:
        config: the whole configuration; ``config.learner`` is the learner.
        folder: the run folder; results.json and the figures are written there.
        tracker: opened by the caller, so that it is closed whatever happens.
        display: what a person sees.

    Returns:
        The values of results.json.

    Raises:
        UserError: something asked for is not there or makes no sense.
        TrainingDivergedError: a loss that is not finite; the rows so far are in results.json.
    """
    started = time.perf_counter()
    device = pick_device(config.device)
    learner: Learner = config.learner
    text_encoder = TextEncoder(
        tokenizer_location(config.backbone),
        config.backbone.max_length,
        cache_folder(config.cache),
        revision=config.backbone.revision,
    )
    tasks, leaks = build_tasks(config, text_encoder, display.reading)
    display.loading(config.backbone.name)
    encoder = load_encoder(config.backbone, vocabulary_size=text_encoder.vocabulary_size)
    ledger = Ledger(encoder.num_parameters(), encoder.num_layer_parameters())
    model = TaskModel(encoder.to(device), config.seed)
    matrix = ScoreMatrix([task.name for task in tasks])
    record = Record(config, tasks, leaks, str(device), matrix, ledger)
    learner.begin_stream(model, tasks=tasks, seed=config.seed, pad_id=text_encoder.pad_id)
    record.timing.prepare_s = time.perf_counter() - started
    tracker.start(folder, record.write(folder))
    display.start(config, tasks)
    stream = _Stream(config, learner, record, display, device)
    if config.evaluation.baseline:
        stream.score_untrained()
    for index in range(len(tasks)):
        stream.learn(index)
        stream.score_row(index)
        stream.account(index)
        results = record.write(folder)
        tracker.row(index, results)
        display.row(index, results)
    record.status = "complete"
    results = record.write(folder)
    tracker.finish(results, plots.write_figures(results, folder))
    display.finish(results, folder)
    return results


class _Stream:
    """The steps of one task, on one run's objects."""

    def __init__(
        self,
        config: RunConfig,
        learner: Learner,
        record: Record,
        display: Display,
        device: torch.device,
    ):
        self._config = config
        self._learner = learner
        self._record = record
        self._display = display
        self._device = device

    def _measure(self, task: Task) -> Cell:
        """Evaluate one task for real."""
        settings = self._config.evaluation
        cell = evaluate(self._learner, task, settings.split, settings.batch_tokens, self._device)
        self._display.evaluated(len(task.split(settings.split)))
        return cell

    def score_untrained(self) -> None:
        """Score the untrained learner on every task."""
        tasks = self._record.tasks
        self._display.stage("scoring the untrained learner")
        self._record.baseline = [self._measure(task) for task in tasks]
        self._record.timing.baseline_s = sum(cell.seconds for cell in self._record.baseline)

    def learn(self, index: int) -> None:
        """Let the learner learn task ``index``."""
        task = self._record.tasks[index]
        self._display.learning(index, task)
        report = fit(self._learner, task, self._config.training, self._device, self._display.step)
        self._record.losses[task.name] = report.losses
        timing = self._record.timing
        timing.train_s.append(report.seconds)
        timing.train_examples.append(report.examples)
        timing.steps.append(report.steps)

    def score_row(self, index: int) -> None:
        """Score every task learned so far."""
        tasks = self._record.tasks[: index + 1]
        self._display.evaluating(index)
        cells = [self._measure(task) for task in tasks]
        for position, cell in enumerate(cells):
            self._record.matrix.record(index, position, cell)
        split = self._config.evaluation.split
        timing = self._record.timing
        timing.evaluate_s.append(sum(cell.seconds for cell in cells))
        timing.evaluate_examples.append(sum(len(task.split(split)) for task in tasks))

    def account(self, index: int) -> None:
        """Write the ledger row, and check that isolated learners kept earlier tasks untouched."""
        tasks = self._record.tasks[: index + 1]
        trained = sum(p.numel() for p in self._learner.trained_parameters().values())
        buffer = self._learner.buffer()
        self._record.ledger.add(
            tasks[index].name,
            trained,
            self._learner.stored_states(tasks),
            (buffer.examples, buffer.nbytes) if buffer is not None else (0, 0),
        )
        fingerprinter = Fingerprinter()
        for task in tasks:
            now = self._fingerprint(fingerprinter, task)
            before = self._record.fingerprints.get(task.name, now)
            if self._learner.promises_memory and now != before:
                raise IsolationError(
                    f"{self._learner.name} promises perfect memory, but learning "
                    f"{tasks[index].name!r} changed what serves {task.name!r}"
                )
            self._record.fingerprints[task.name] = now

    def _fingerprint(self, fingerprinter: Fingerprinter, task: Task) -> str:
        """Return the fingerprint of what serves a task, its evaluation data and its metric."""
        split = self._config.evaluation.split
        state = self._learner.served_state(task.name)
        return fingerprinter.of(state, task.hashes[split], task.spec.metric)


def pick_device(name: str) -> torch.device:
    """Return the device: ``auto`` takes a GPU where there is one.

    Raises:
        UserError: a device that this machine does not have.
    """
    kind = choose("device", name.partition(":")[0], ("auto", "cpu", "cuda"))
    available = torch.cuda.is_available()
    require(kind != "cuda" or available, "device=cuda: torch finds no CUDA device; use device=cpu")
    if kind == "auto":
        return torch.device("cuda" if available else "cpu")
    return torch.device(name)
