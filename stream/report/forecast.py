"""What a dry run says: the tasks of a run, the jobs of a multirun, and what they would take."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from rich import box
from rich.table import Table

from stream.config.task import SPLITS
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.formatting import clock, count
from stream.report.plan import WorkPlan

MOST_JOBS = 40
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Taken(Protocol):
    """What a run takes; see `stream.run.dry_run.estimate.Estimate`."""

    @property
    def learning_s(self) -> float: ...
    @property
    def scoring_s(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def peak_bytes(self) -> float: ...
    @property
    def checkpoint_bytes(self) -> float: ...
    @property
    def record_bytes(self) -> float: ...
    @property
    def figures_bytes(self) -> float: ...
    @property
    def disk_bytes(self) -> float: ...


class Foretold(NamedTuple):
    """A run that would be: what tells it from others, its work, and what it takes."""

    settings: str
    num_tasks: int
    plan: WorkPlan
    taken: Taken


def task_table(tasks: Sequence[Task], plan: WorkPlan) -> Table:
    """Return the rows of each split of each task, and its steps."""
    table = Table(box=box.SIMPLE)
    table.add_column("task")
    for name in (*SPLITS, "steps"):
        table.add_column(name, justify="right")
    for task, work in zip(tasks, plan.works, strict=True):
        sizes = [len(task.split(split)) for split in SPLITS]
        table.add_row(task.spec.title, *(f"{n:,}" for n in (*sizes, work.steps)))
    sums = [sum(len(task.split(split)) for task in tasks) for split in SPLITS]
    table.add_section()
    table.add_row(count(len(tasks), "task"), *(f"{n:,}" for n in (*sums, plan.steps)))
    return table


def run_table(foretold: Foretold, leaks: Iterable[Leak], mode: str) -> Table:
    """Return what a run would do and take.

    Args:
        foretold: the run.
        leaks: held-out texts that were found in training rows.
        mode: what is done about them: the setting ``leaks``.
    """
    plan, taken = foretold.plan, foretold.taken
    table = Table(box=box.SIMPLE, show_header=False)
    leaked = sum(leak.count for leak in leaks)
    if leaked:
        what = "dropped" if mode == "drop" else "kept"
        table.add_row("leaks", f"{count(leaked, 'held-out text')} in training rows, {what}")
    table.add_row("steps", f"{plan.steps:,}, of {plan.examples:,} examples")
    scored = f"{plan.evaluations:,} evaluations of a text, {sum(plan.scored):,} of a task"
    table.add_row("scores", scored)
    if plan.probed:
        table.add_row("probe", f"{plan.probed:,} evaluations more")
    table.add_row("learning", f"about {clock(taken.learning_s)}")
    table.add_row("scoring", f"about {clock(taken.scoring_s)}")
    table.add_row("in all", f"about {clock(taken.seconds)}, besides figures and the tracker")
    table.add_row("memory", f"about {size(taken.peak_bytes)} at most")
    table.add_row(
        "disk",
        f"about {size(taken.disk_bytes)}: checkpoints {size(taken.checkpoint_bytes)}, "
        f"record {size(taken.record_bytes)}, figures {size(taken.figures_bytes)}",
    )
    return table


def job_table(jobs: Sequence[Foretold], total: int) -> Table:
    """Return what each job of a multirun would take, and all of them one after another.

    Args:
        jobs: those that were looked at.
        total: how many there are; the sum is of all, with the mean of ``jobs``.
    """
    table = Table(box=box.SIMPLE)
    for name in ("job", "settings"):
        table.add_column(name)
    for name in ("tasks", "steps", "learning", "scoring", "memory", "disk"):
        table.add_column(name, justify="right")
    for number, job in enumerate(jobs[:MOST_JOBS], 1):
        table.add_row(str(number), job.settings, *_columns(job))
    if len(jobs) > MOST_JOBS:
        table.add_row("...", f"{len(jobs) - MOST_JOBS} more")
    factor = total / len(jobs)
    table.add_section()
    table.add_row(
        "all",
        f"{total}, in {clock(factor * sum(job.taken.seconds for job in jobs))}",
        "",
        f"{factor * sum(job.plan.steps for job in jobs):,.0f}",
        clock(factor * sum(job.taken.learning_s for job in jobs)),
        clock(factor * sum(job.taken.scoring_s for job in jobs)),
        size(max(job.taken.peak_bytes for job in jobs)),
        size(factor * sum(job.taken.disk_bytes for job in jobs)),
    )
    return table


def _columns(job: Foretold) -> list[str]:
    """Return what a job takes, as text."""
    taken = job.taken
    times = clock(taken.learning_s), clock(taken.scoring_s)
    room = size(taken.peak_bytes), size(taken.disk_bytes)
    return [str(job.num_tasks), f"{job.plan.steps:,}", *times, *room]


def size(num_bytes: float) -> str:
    """Return a size in a unit that fits.

    >>> size(2_500_000), size(4.2e9), size(900), size(12_345)
    ('2.5 MB', '4.2 GB', '0.9 kB', '12 kB')
    """
    unit, factor = next(((u, f) for u, f in UNITS if num_bytes >= f), UNITS[-1])
    value = num_bytes / factor
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
