"""Kept runs that are made again: do their logits have the same bits?

Each is a line of ``OUT/again.jsonl``, and each that took the place of another one, which was made
with a fault of the program, say, is a line of ``OUT/replaced.jsonl``.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence.plan import Job, jobs, with_settings
from benchmarks.evidence.quantities import both_digests
from benchmarks.evidence.records import AGAIN, REPLACED, RUNS, Again
from benchmarks.evidence.runs import missing, run_all, without_places
from benchmarks.evidence.searches import chosen_for
from benchmarks.lines import append_line
from stream.config.workers import WorkersConfig
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord


def run_again(
    out: Path,
    more: Sequence[str],
    workers: WorkersConfig,
    wanted: Callable[[Job], bool],
    count: int,
) -> list[str]:
    """Make some of the kept runs again, and note what came of it; return what failed.

    Args:
        out: the folder of all records.
        more: further settings of every run, such as ``data.root=DIR``.
        workers: how many runs at once, and where.
        wanted: tells jobs that may be chosen.
        count: how many are, at random but always the same ones.
    """
    kept = [job for job in jobs() if wanted(job) and is_kept(out, job)]
    todo = {}
    for job in random.Random(0).sample(kept, min(count, len(kept))):
        settings = job.settings(chosen_for(out, job.group, job.method) or {})
        todo[job] = with_settings(settings, more)

    def compare(job: Job, folder: Path) -> str:
        first = RunRecord.read(out / RUNS / job.name)
        found = compared(job.name, first, RunRecord.read(folder))
        append_line(out / AGAIN, found)
        return f"{found.identical} of {found.tasks} tasks have the same logits"

    return run_all(todo, workers, compare)


def note_replaced(out: Path, earlier: Path) -> int:
    """Compare kept runs with earlier ones of the same settings that they replaced.

    Args:
        out: the folder of all records.
        earlier: the same folder, as it was once.

    Returns:
        how many there are.
    """
    (out / REPLACED).unlink(missing_ok=True)
    number = 0
    for file in sorted((earlier / RUNS).glob(f"*/*/{FILE_NAME}")):
        name = str(file.parent.relative_to(earlier / RUNS))
        now = out / RUNS / name / FILE_NAME
        if not now.exists() or now.read_bytes() == file.read_bytes():
            continue
        first, second = RunRecord.read(file.parent), RunRecord.read(now.parent)
        if without_places(first.overrides or []) == without_places(second.overrides or []):
            append_line(out / REPLACED, compared(name, first, second))
            number += 1
    return number


def is_kept(out: Path, job: Job) -> bool:
    """Whether a run is kept that has the settings of the plan, not those of an earlier search."""
    return (out / RUNS / job.name / FILE_NAME).exists() and missing(out, job, []) is None


def compared(name: str, first: RunRecord, second: RunRecord) -> Again:
    """Return what two runs of one command have in common."""
    one, other = both_digests(first), both_digests(second)
    same = [one[task] == other[task] for task in first.order]
    scores = zip(first.scores[-1], second.scores[-1], strict=True)
    return Again(
        run=name,
        tasks=len(same),
        identical=sum(same),
        largest=max(abs(float(a - b)) for a, b in scores),
        devices=(first.computed_on, second.computed_on),
        differing=[task for task in first.order if one[task][0] != other[task][0]],
        moved=float(np.mean(second.scores[-1]) - np.mean(first.scores[-1])),
    )
