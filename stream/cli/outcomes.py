"""What became of each job of a sweep, told through files, so that it works across processes.

Jobs of one sweep may run in this process, in others, or on other machines. Each start of a sweep
has a folder ``outcomes/START`` with its plan and one JSON file per job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from stream.files.atomic import write_json
from stream.formatting import DASH, clock, percent, visible

OUTCOMES = "outcomes"
RUNNING, FINISHED, SKIPPED, FAILED, STOPPED = "running", "finished", "skipped", "failed", "stopped"
REASON_LETTERS = 400
HEADINGS = ("job", "outcome", "average", "forgetting", "time", "folder", "settings")


@dataclass(frozen=True)
class Plan:
    """What a start of a sweep will do.

    Attributes:
        jobs: how many jobs it has; None where only the sweeper knows.
        swept: the settings that differ from job to job.
    """

    jobs: int | None = None
    swept: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, sweep: Path, start: str) -> "Plan":
        """Return the plan of a start; an empty one where nothing was written."""
        path = _folder(sweep, start) / "plan.json"
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else cls()

    def write(self, sweep: Path, start: str) -> None:
        """Write it down for the jobs."""
        _write(_folder(sweep, start) / "plan.json", self)


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        job: its number, from 0.
        folder: the name of its folder in the sweep.
        settings: what tells it from the other jobs.
        outcome: ``finished``, ``skipped``, ``failed``, ``stopped`` or, so far, ``running``.
        reason: why it did not finish.
        average: its average score; None where it has none.
        forgetting: its forgetting; None where it has none.
        seconds: how long it took in this start.
    """

    job: int
    folder: str
    settings: str
    outcome: str = RUNNING
    reason: str = ""
    average: float | None = None
    forgetting: float | None = None
    seconds: float = 0.0

    def write(self, sweep: Path, start: str) -> None:
        """Write it down for the others."""
        _write(_folder(sweep, start) / f"job-{self.job}.json", self)


def outcomes(sweep: Path, start: str) -> list[Outcome]:
    """Return what became of the jobs of one start so far, in order."""
    paths = _folder(sweep, start).glob("job-*.json")
    found = [msgspec.json.decode(path.read_bytes(), type=Outcome) for path in paths]
    return sorted(found, key=lambda outcome: outcome.job)


def heading(own: Outcome, plan: Plan, others: Sequence[Outcome]) -> str:
    """Return what is said when a job begins: which one it is, and about how long all will take.

    Args:
        own: the job.
        plan: the start that it belongs to.
        others: the jobs that have begun, itself included.
    """
    of = "" if plan.jobs is None else f" of {plan.jobs}"
    left = _time_left(plan, others)
    after = "" if left is None else f" (about {clock(left)} left)"
    return f"job {own.job + 1}{of}: {own.settings}{after}"


def _time_left(plan: Plan, begun: Sequence[Outcome]) -> float | None:
    """Estimate the seconds that the jobs which have not ended take; None without a measure."""
    took = [outcome.seconds for outcome in begun if outcome.outcome == FINISHED]
    if plan.jobs is None or not took:
        return None
    running = sum(outcome.outcome == RUNNING for outcome in begun)
    to_end = plan.jobs - len(begun) + running
    return to_end * sum(took) / len(took) / max(running, 1)


def closing_lines(sweep: Path, found: Sequence[Outcome], *, search: bool = False) -> list[str]:
    """Return a table of all jobs, why some failed, and how many ended in which way.

    Args:
        sweep: the folder of the sweep.
        found: the jobs of this start.
        search: whether they look for the best settings, so that the best job is named.
    """
    rows = [HEADINGS, *(_row(outcome) for outcome in found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    counts = {kind: sum(o.outcome == kind for o in found) for kind in (FINISHED, SKIPPED, FAILED)}
    counts |= {k: n for k in (STOPPED, RUNNING) if (n := sum(o.outcome == k for o in found))}
    total = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    best = _best(found) if search else []
    return [*table, *best, f"sweep in {sweep}: {total}", *_failures(found)]


def _best(found: Sequence[Outcome]) -> list[str]:
    """Return a line about the job with the highest average; none where no job has one."""
    scored = [(o.average, -o.job, o) for o in found if o.average is not None]
    if not scored:
        return []
    best = max(scored)[-1]
    return [f"best: job {best.job + 1}, average {percent(best.average)}: {best.settings}"]


def _failures(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line per job that failed."""
    for outcome in found:
        if outcome.outcome == FAILED:
            yield f"  failed: {outcome.folder}: {visible(outcome.reason, REASON_LETTERS)}"


def _row(outcome: Outcome) -> tuple[str, ...]:
    """Return a job as a row of the table."""
    ran = outcome.outcome not in (SKIPPED, RUNNING)
    return (
        str(outcome.job + 1),
        outcome.outcome,
        percent(outcome.average),
        percent(outcome.forgetting),
        clock(outcome.seconds) if ran else DASH,
        outcome.folder,
        outcome.settings,
    )


def _folder(sweep: Path, start: str) -> Path:
    return sweep / OUTCOMES / start


def _write(path: Path, values: Plan | Outcome) -> None:
    """Write one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(values))
