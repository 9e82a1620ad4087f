"""What a person sees while a stream runs: one live line on a terminal, plain lines elsewhere.

Everything but the live line also goes to run.log in the run folder.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from stream.config.run import RunConfig
from stream.data.prepare.account_lines import account_lines
from stream.data.prepare.shortages import shortages
from stream.data.task import Task
from stream.evaluation.probe import planned_evaluations
from stream.formatting import count, data_label, percent
from stream.record.run_record import RunRecord
from stream.report.summary import closing_table, memory_line
from stream.run_folder import LOG_NAME

PLAIN_EVERY_S = 10.0
TRAIN_COST = 3  # a training example costs about as much as three evaluated ones
RATE_MEMORY = 0.9


class Display:
    """The live display of one run; used in a ``with`` block."""

    def __init__(self, console: Console, folder: Path, label: str = ""):
        """Show on ``console`` and log to ``folder``; ``label`` goes before every line."""
        self._console = console
        self._label = f"[{label}] " if label else ""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[detail]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bar: TaskID = self._progress.add_task("", total=None, detail="")
        self._log = logging.getLogger("stream")
        self._handler = logging.FileHandler(folder / LOG_NAME, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._warnings = _ConsoleWarnings(console)
        self._where = ""
        self._detail = ""
        self._tasks = self._index = 0
        self._step_cost: list[float] = []
        self._done = 0.0
        self._total = 1.0
        self._rate = 0.0
        self._ticked = self._said = self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._log.setLevel(logging.INFO)
        self._propagated, self._log.propagate = self._log.propagate, False
        self._log.addHandler(self._handler)
        self._log.addHandler(self._warnings)
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
        if error is not None:
            self._log.error("stopped: %s: %s", type(error).__name__, error)
        self._log.removeHandler(self._handler)
        self._log.removeHandler(self._warnings)
        self._log.propagate = self._propagated
        self._handler.close()

    def say(self, line: str) -> None:
        """Print a line and log it."""
        wrap = self._console.is_terminal  # a line in a file or a pipe stays one line
        text = self._label + line
        self._console.print(text, markup=False, highlight=False, soft_wrap=not wrap)
        self._log.info(line)
        self._said = time.monotonic()

    # Before the first task.

    def reading(self, name: str) -> None:
        """A task is about to be read and encoded."""
        self._where = f"reading {name}"
        self._show()

    def loading(self, backbone: str) -> None:
        """The encoder is about to be loaded."""
        self._where = f"loading {backbone}"
        self._show()

    def start(self, config: RunConfig, tasks: Sequence[Task], done: int = 0) -> None:
        """Everything is ready; say what will be done, and plan the work for the time left.

        ``done`` tasks were learned before.
        """
        split = config.evaluation.split
        sizes = [len(task.split(split)) for task in tasks]
        seen = [len(sizes) if config.evaluation.unseen else k + 1 for k in range(len(sizes))]
        evaluations = sum(sum(sizes[:k]) for k in seen)
        evaluations += sum(sizes) if config.evaluation.baseline else 0
        plans = [config.learner.workload(task, config.training) for task in tasks]
        training = sum(plan.examples for plan in plans)
        probed = planned_evaluations(config.probe, tasks, split, [plan.steps for plan in plans])
        self._tasks = len(tasks)
        # Steps may hold more examples than planned (replay), so the plan is kept a step.
        self._step_cost = [TRAIN_COST * plan.examples / max(plan.steps, 1) for plan in plans]
        self._total = training * TRAIN_COST + evaluations + probed
        self._began = self._ticked = time.monotonic()
        self.say(
            f"{config.learner.name} on {config.stream_name}, {count(len(tasks), 'task')}, "
            f"{data_label(config.data.source)}, {config.backbone.name}, seed {config.seed}: "
            f"{training:,} training examples, {evaluations:,} evaluations"
        )
        if probed:
            self.say(f"the probe, every {config.probe.every} steps, adds {probed:,} evaluations")
        for task in tasks:
            if few := [*shortages(task, "train"), *shortages(task, split)]:
                self.say(f"note: {task.name}: {'; '.join(few)}")
            for line in account_lines(task):
                self._log.info("%s %s", task.name, line)

    # During the stream.

    def stage(self, what: str) -> None:
        """Name what is being done."""
        self._where, self._detail = what, ""
        self._show()

    def learning(self, index: int, task: Task) -> None:
        """A task is about to be learned."""
        self._where = f"task {index + 1} of {self._tasks}, {task.spec.title}: learning"
        self._index, self._detail, self._rate = index, "", 0.0
        self._ticked = time.monotonic()
        self._show()

    def step(self, step: int, steps: int, examples: int) -> None:
        """A training step is done."""
        now = time.monotonic()
        rate = examples / max(now - self._ticked, 1e-9)
        self._rate = rate if step == 1 else RATE_MEMORY * self._rate + (1 - RATE_MEMORY) * rate
        self._ticked = now
        self._done += self._step_cost[self._index]
        self._detail = f"step {step}/{steps}, {self._rate:,.0f} examples/s"
        self._show()

    def evaluating(self, index: int, tasks: int) -> None:
        """Some tasks are about to be scored after task ``index``."""
        self.stage(f"task {index + 1} of {self._tasks}: scoring {count(tasks, 'task')}")

    def evaluated(self, examples: int) -> None:
        """Some examples were scored."""
        self._done += examples
        self._show()

    def row(self, index: int, record: RunRecord) -> None:
        """Print the row of scores after task ``index``."""
        titles, scores = record.titles[: index + 1], record.matrix[index]
        metrics, times = record.metrics, record.timing.by_task
        self.say(
            f"after {index + 1:>2} {titles[-1]}: scored {percent(scores[index])}, "
            f"average {percent(metrics['average_score'])}, "
            f"forgetting {percent(metrics['forgetting'])}, "
            f"learned in {times.train_s[index]:.1f} s, "
            f"scored in {times.evaluate_s[index]:.1f} s"
        )
        pairs = (f"{t} {percent(s)}" for t, s in zip(titles, scores, strict=False))
        self.say("      " + " · ".join(pairs))
        cells = record.score_matrix.cells[index][: index + 1]
        undefined = [t for t, c in zip(titles, cells, strict=True) if c is not None and c.undefined]
        if undefined:
            why = "all predictions or all labels are equal"
            self.say(f"      undefined, so recorded as 0 ({why}): {', '.join(undefined)}")

    def finish(self, record: RunRecord, folder: Path) -> None:
        """Print the closing table."""
        self._progress.stop()
        table = closing_table(record)
        if not self._label:  # tables of jobs side by side would mix
            self._console.print(table)
        with self._console.capture() as capture:
            self._console.print(table)
        self._log.info("\n%s", capture.get())
        self.say(memory_line(record))
        self.say(f"run folder: {folder}")

    def _show(self) -> None:
        """Refresh the live line; without a terminal, a plain line every ten seconds."""
        left = self._time_left()
        detail = ", ".join(part for part in (self._detail, left) if part)
        if self._console.is_terminal:
            self._progress.update(
                self._bar,
                description=self._where,
                completed=min(self._done, self._total),
                total=self._total,
                detail=detail,
            )
        elif time.monotonic() - self._said > PLAIN_EVERY_S:
            self.say(f"  {self._where}  {detail}".rstrip())

    def _time_left(self) -> str:
        """Estimate the time left from the work done so far."""
        if self._done < self._total / 100:
            return ""
        elapsed = time.monotonic() - self._began
        left = int(elapsed * max(self._total - self._done, 0) / self._done)
        return f"about {left // 60}:{left % 60:02d} left"


class _ConsoleWarnings(logging.Handler):
    """Shows the program's warnings on the console too."""

    def __init__(self, console: Console):
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning; errors are printed by whoever catches them."""
        if record.levelno == logging.WARNING:
            self._console.print(f"warning: {record.getMessage()}", markup=False, highlight=False)
