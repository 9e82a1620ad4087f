"""What a dry run says: the tasks of a run, the jobs of a multirun, and what they would take."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table

from stream.config.source import SPLITS
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.formatting import clock, count
from stream.report.many import is_many
from stream.report.plan import Estimate, WorkPlan

MOST_JOBS = 40
MOST_ROWS = 10  # of many tasks, at each end
JOB_HEADINGS = ("job", "steps", "learning", "scoring", "memory", "disk", "settings")
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Foretold(NamedTuple):
    """A run that would be: what tells it from others, its work, and what it takes."""

    settings: str
    num_tasks: int
    plan: WorkPlan
    taken: Estimate


def task_table(tasks: Sequence[Task], plan: WorkPlan) -> Table:
    """Return the rows of each split of each task, and its steps; of many the first and the last."""
    table = Table(box=box.SIMPLE)
    table.add_column("task")
    for name in (*SPLITS, "steps"):
        table.add_column(name, justify="right")
    cut = range(MOST_ROWS, len(tasks) - MOST_ROWS) if is_many(len(tasks)) else range(0)
    for number, (task, work) in enumerate(zip(tasks, plan.works, strict=True)):
        if number in cut:
            if number == cut.start:
                table.add_row(f"... {count(len(cut), 'more task')} ...")
            continue
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
    if plan.selecting:
        table.add_row("select", f"{plan.selecting:,} evaluations more, of candidates")
    if plan.probed:
        table.add_row("probe", f"{plan.probed:,} evaluations more")
    if plan.routed:
        table.add_row("routing", f"{plan.routed:,} passes of a text more")
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


def job_lines(jobs: Sequence[Foretold], total: int) -> list[str]:
    """Return what each job of a multirun would take, and all of them one after another.

    Args:
        jobs: those that were looked at.
        total: how many there are; the sum is of all, with the mean of ``jobs``.
    """
    factor = total / len(jobs)
    steps, learning, scoring, disk = (
        factor * sum(values) for values in zip(*map(_amounts, jobs), strict=True)
    )
    peak = max(job.taken.peak_bytes for job in jobs)
    rows: list[tuple[str, ...]] = [JOB_HEADINGS]
    for number, job in enumerate(jobs[:MOST_JOBS], 1):
        own = _columns(*_amounts(job), job.taken.peak_bytes)
        rows.append((str(number), *own, job.settings))
    rows.append(("all", *_columns(steps, learning, scoring, disk, peak), ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(JOB_HEADINGS) - 1)]
    lines = ["  ".join([*map(str.rjust, row, widths), row[-1]]).rstrip() for row in rows]
    if len(jobs) > MOST_JOBS:
        lines.insert(-1, f"... and {len(jobs) - MOST_JOBS} more")
    seconds = factor * sum(job.taken.seconds for job in jobs)
    return [*lines, f"{count(total, 'job')} one after another: about {clock(seconds)} in all"]


def _amounts(job: Foretold) -> tuple[float, float, float, float]:
    """Return what of a job adds up: steps, seconds of learning and of scoring, bytes on disk."""
    taken = job.taken
    return job.plan.steps, taken.learning_s, taken.scoring_s, taken.disk_bytes


def _columns(
    steps: float, learning: float, scoring: float, disk: float, peak: float
) -> tuple[str, ...]:
    """Return amounts as text, in the order of the headings."""
    return f"{steps:,.0f}", clock(learning), clock(scoring), size(peak), size(disk)


def size(num_bytes: float) -> str:
    """Return a size in a unit that fits.

    >>> size(2_500_000), size(4.2e9), size(900), size(12_345)
    ('2.5 MB', '4.2 GB', '0.9 kB', '12 kB')
    """
    unit, factor = next(((u, f) for u, f in UNITS if num_bytes >= f), UNITS[-1])
    value = num_bytes / factor
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
