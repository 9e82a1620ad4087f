"""What a person sees while a stream runs: one live line on a terminal, plain lines elsewhere.

Everything but what is done at the moment also goes to run.log in the run folder.
"""

import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import numpy as np
from rich.console import Console

from stream.config.run import RunConfig
from stream.config.task import is_import_path
from stream.data.prepare.account_lines import account_lines
from stream.data.prepare.shortages import shortages
from stream.data.task import Task
from stream.files.run_folder import LOG_NAME
from stream.formatting import clock, count, data_label, percent, signed, stream_title
from stream.record.run_record import RunRecord
from stream.report.many import is_many
from stream.report.plan import WorkPlan
from stream.report.status import INDENT, Status
from stream.report.summary import as_text, closing_table, memory_line, told_unlearned

TRAIN_COST = 3  # a training example costs about as much as three evaluated ones
RATE_MEMORY = 0.9
RATE_S = 2.0  # over which the rate of several workers is averaged
MOST_NOTES = 10  # lines about single tasks before the first one
MOST_CHANGES = 5  # tasks that a row names, where there are many
FIRST_S, ESTIMATED_AFTER_S = 2.0, 10.0  # before, the time left is a guess


class Display:
    """The display of one run; used in a ``with`` block."""

    def __init__(
        self,
        console: Console,
        folder: Path,
        label: str = "",
        mode: str = "auto",
        *,
        is_job: bool = False,
    ):
        """Show on ``console`` and log to ``folder``.

        Args:
            console: where a person looks.
            folder: the run folder.
            label: goes before every line, where jobs share a screen.
            mode: the setting ``display``.
            is_job: it is one of several runs; their results are shown at the end of all.
        """
        self._status = Status(console, mode, label)
        self._label = label
        self._log = logging.getLogger("stream")
        self._handler = logging.FileHandler(folder / LOG_NAME, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._warnings = _ConsoleWarnings(self._status, is_job=is_job)
        self._always = not is_job
        self._what = ""
        self._tasks = self._index = 0
        self._step_cost: list[float] = []
        self._done = 0.0
        self._total = 0.0
        self._rate = 0.0
        self._ticked = self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._log.setLevel(logging.INFO)
        self._propagated, self._log.propagate = self._log.propagate, False
        self._log.addHandler(self._handler)
        self._log.addHandler(self._warnings)
        self._status.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._status.stop()
        if error is not None:
            self._log.error("stopped: %s: %s", type(error).__name__, error)
        self._log.removeHandler(self._handler)
        self._log.removeHandler(self._warnings)
        self._log.propagate = self._propagated
        self._handler.close()

    def say(self, line: str, *, always: bool = False) -> None:
        """Print a line and log it; with ``always`` it is printed in quiet, too."""
        self._status.say(line, always=always)
        self._log.info(line)

    # Before the first task.

    def preparing(self, what: str, detail: str) -> None:
        """Something is about to be done, and how far that is."""
        if what != self._what:
            self.stage(what)
        self._status.update(detail)

    def start(self, config: RunConfig, tasks: Sequence[Task], done: int = 0) -> None:
        """Everything is ready; say what will be done, and plan the work for the time left.

        ``done`` tasks were learned before.
        """
        plan = WorkPlan.of(config, tasks)
        self._tasks = len(tasks)
        # Steps may hold more examples than planned (replay), so the plan is kept a step.
        self._step_cost = [TRAIN_COST * work.examples / max(work.steps, 1) for work in plan.works]
        self._total = plan.examples * TRAIN_COST + plan.evaluations + plan.probed + plan.selecting
        self._began = self._ticked = time.monotonic()
        self._log.info(
            "%s on %s, %s, %s, %s, seed %s",
            config.learner.name,
            stream_title(config.stream_name),
            count(len(tasks), "task"),
            data_label(config.data.source),
            config.backbone.name,
            config.seed,
        )
        self.say(
            f"{plan.steps:,} training steps, {plan.examples:,} examples, "
            f"{plan.evaluations:,} evaluations"
        )
        if plan.selecting:
            self.say(
                f"{count(len(config.candidates), 'candidate')} learn each task; scoring them adds "
                f"{plan.selecting:,} evaluations"
            )
        if plan.probed:
            self.say(
                f"the probe, every {config.probe.every} steps, adds {plan.probed:,} evaluations"
            )
        if plan.routed:
            self.say(f"routing adds {plan.routed:,} passes of a text")
        self._say_shortages(config, tasks)
        for task in tasks:
            for line in account_lines(task):
                self._log.info("%s %s", task.name, line)

    def _say_shortages(self, config: RunConfig, tasks: Sequence[Task]) -> None:
        """Say which tasks have few rows; of many such tasks the log alone names all."""
        found = {
            task.name: [*shortages(task, "train"), *shortages(task, config.evaluation.split)]
            for task in tasks
        }
        notes = [f"note: {name}: {'; '.join(few)}" for name, few in found.items() if few]
        for line in notes[:MOST_NOTES]:
            self.say(line)
        for line in notes[MOST_NOTES:]:
            self._log.info(line)
        if len(notes) > MOST_NOTES:
            more = count(len(notes) - MOST_NOTES, "more task")
            self.say(f"note: {more} whose rows lack something: {LOG_NAME}")

    # During the stream.

    def stage(self, what: str) -> None:
        """Name what is being done."""
        self._what = what
        self._status.stage(what)

    def _stage_of_stream(self, what: str) -> None:
        """Name what is being done of the stream, whose progress goes on."""
        self._what = what
        self._status.stage(what, self._time_left(), self._fraction, announce=False)

    @property
    def _fraction(self) -> float:
        """How much of the stream is done."""
        return min(self._done / max(self._total, 1), 1.0)

    def learning(self, index: int, task: Task) -> None:
        """A task is about to be learned."""
        self._index, self._rate = index, 0.0
        self._ticked = time.monotonic()
        title = f"task {index + 1} of {self._tasks}, {task.spec.title}"
        self._stage_of_stream(f"{title}: learning")

    def step(self, step: int, steps: int, examples: int) -> None:
        """A training step is done."""
        now = time.monotonic()
        rate = examples / max(now - self._ticked, 1e-9)
        self._rate = rate if step == 1 else RATE_MEMORY * self._rate + (1 - RATE_MEMORY) * rate
        self._ticked = now
        self._done += self._step_cost[self._index]
        self._update(f"step {step}/{steps}, {self._rate:,.0f} examples/s")

    def learning_several(self, tasks: Sequence[Task]) -> None:
        """Some tasks are being learned, by workers."""
        names = ", ".join(task.spec.title for task in tasks)
        what = f"learning {count(len(tasks), 'task')}: {names}"
        if what != self._what:
            self._stage_of_stream(what)

    def steps(self, index: int, steps: int, examples: int) -> None:
        """A worker has done some training steps of a task."""
        now = time.monotonic()
        faded = math.exp((self._ticked - now) / RATE_S)
        self._rate = self._rate * faded + examples / RATE_S  # of all workers together
        self._ticked = now
        self._done += steps * self._step_cost[index]
        self._update(f"{self._rate:,.0f} examples/s")

    def evaluating(self, index: int, tasks: int) -> None:
        """Some tasks are about to be scored after task ``index``."""
        self._stage_of_stream(f"task {index + 1} of {self._tasks}: scoring {count(tasks, 'task')}")

    def evaluated(self, examples: int) -> None:
        """Some examples were scored."""
        self._done += examples
        self._update()

    def row(self, index: int, record: RunRecord) -> None:
        """Print the row of scores after task ``index``."""
        titles, score = record.titles[: index + 1], record.matrix[index][index]
        metrics, times = record.metrics, record.timing.by_task
        self.say(
            f"after {index + 1:>2} {titles[-1]}: scored {percent(score)}, "
            f"average {percent(metrics['average_score'])}, {_of_seen_classes(record)}"
            f"forgetting {percent(metrics['forgetting'])}, "
            f"learned in {times.train_s[index]:.1f} s, "
            f"evaluated in {times.evaluate_s[index]:.1f} s"
        )
        if metrics.get("routing_accuracy") is not None:
            self.say(
                f"{INDENT}with inferred tasks: average {percent(metrics['routed_average_score'])}, "
                f"{percent(metrics['routing_accuracy'])}% of the texts given to their task"
            )
        if not self._status.in_notebook:  # there the scores are at hand as a table
            self.say(INDENT + _scores_of_row(record, index))
        self._say_undefined(index, record)
        if record.is_unlearned(index):
            # What learns all tasks together has no steps of the later ones.
            steps = count(times.steps[index] or record.timing.steps, "training step")
            self.say(
                f"warning: {titles[-1]}: all texts get one answer after {steps}. If these are "
                "enough, training has failed: try a lower learner.lr, another seed, or select"
            )

    def _say_undefined(self, index: int, record: RunRecord) -> None:
        """Say which scores of a row have no value, and why."""
        reasons: dict[str, list[str]] = {}
        for place, cell in enumerate(record.score_matrix.cells[index][: index + 1]):
            if cell is not None and cell.undefined:
                metric = record.metric_names[place]
                equal = "all predictions or all labels are equal"
                why = f"{metric} gave NaN" if is_import_path(metric) else equal
                reasons.setdefault(why, []).append(record.titles[place])
        for why, titles in reasons.items():
            self.say(f"{INDENT}undefined, so recorded as 0 ({why}): {', '.join(titles)}")

    def finish(self, record: RunRecord, folder: Path) -> None:
        """Print the closing table; what is left to do is shown as before."""
        table = closing_table(record)
        if not self._label:  # tables of jobs side by side would mix
            self._status.show(table, always=self._always)
        self._log.info("\n%s", as_text(table))
        if not self._always and (unlearned := told_unlearned(record)):  # the table is not shown
            self.say(f"warning: one answer for all texts: {unlearned}", always=True)
        self.say(memory_line(record), always=self._always)
        self.say(f"run folder: {folder}", always=self._always)

    def _update(self, detail: str = "") -> None:
        """Say how far the stage is, and the whole run."""
        parts = (self._time_left(), detail)
        self._status.update(", ".join(part for part in parts if part), self._fraction)

    def _time_left(self) -> str:
        """Estimate the time left from the work done so far."""
        elapsed = time.monotonic() - self._began
        early = FIRST_S if self._done >= self._total / 100 else ESTIMATED_AFTER_S
        if not self._done or elapsed < early:
            return ""
        return f"about {clock(elapsed * max(self._total - self._done, 0) / self._done)} left"


def _scores_of_row(record: RunRecord, index: int) -> str:
    """Return the score of each task learned so far; of many, those that this row changed most."""
    scores, titles = record.matrix[index], record.titles
    if not is_many(index + 1):
        shown = zip(titles, scores[: index + 1], strict=False)
        return " · ".join(f"{title} {percent(score)}" for title, score in shown)
    now, before = (np.array(record.matrix[i][:index], dtype=np.float64) for i in (index, index - 1))
    changes = np.nan_to_num(now - before)
    changed = np.argsort(-np.abs(changes), kind="stable")[: np.count_nonzero(changes)]
    if not len(changed):
        return f"the scores of the {index:,} tasks before are as they were"
    shown = [
        f"{titles[at]} {percent(float(now[at]))} ({signed(float(changes[at]))})"
        for at in changed[:MOST_CHANGES]
    ]
    return f"changed: {len(changed):,} of {index:,} scores, most: {' · '.join(shown)}"


class _ConsoleWarnings(logging.Handler):
    """Shows the program's warnings on the console too.

    What is said of the data is said of every job of a sweep. A process shows it once; each log has
    it.
    """

    _shown: ClassVar[set[str]] = set()

    def __init__(self, status: Status, *, is_job: bool):
        super().__init__(logging.WARNING)
        self._status, self._is_job = status, is_job

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning; errors are printed by whoever catches them."""
        said = record.getMessage()
        if record.levelno != logging.WARNING or (self._is_job and said in self._shown):
            return
        self._shown.add(said)
        self._status.say(f"warning: {said}", always=True)


def _of_seen_classes(record: RunRecord) -> str:
    """Say how many rows of all tasks so far are right, where one head answers for all classes."""
    if record.scenario != "shared_head":
        return ""
    return f"of all classes seen {percent(record.metrics['seen_class_accuracy'])}, "
