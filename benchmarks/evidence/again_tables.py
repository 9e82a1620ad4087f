"""Tables in Markdown of runs that were made again, and of those that replaced others."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.evidence.plan import ABLATED, jobs
from benchmarks.evidence.records import AGAIN, REPLACED, Again, Records
from benchmarks.lines import read_lines
from benchmarks.markdown import table
from stream.formatting import percent

UNNAMED = "a GPU that the record does not name"


def again(records: Records) -> str:
    """Return what came of runs that were made a second time."""
    found = read_lines(records.out / AGAIN, Again)
    if not found:
        return "No run was made a second time yet."
    lines = [
        (
            *(f"`{one.run}`", f"{one.identical} of {one.tasks}", _first(one), percent(one.largest)),
            *(UNNAMED if device == "cuda" else device for device in one.devices),
        )
        for one in found
    ]
    names = "run,tasks with the same logits,first to differ,largest difference of a score"
    return table(f"{names},first on,again on", lines)


def _first(one: Again) -> str:
    """Return the first task that had other logits right after it was learned."""
    if one.identical == one.tasks:
        return "none"
    if one.differing is None:
        return "not noted"
    return one.differing[0] if one.differing else "none when learned"


def replaced(records: Records) -> str:
    """Return how far scores moved where runs took the place of others, by stream and learner."""
    found = {one.run: one for one in read_lines(records.out / REPLACED, Again)}
    if not found:
        return "No run was replaced."
    groups: dict[tuple[str, str], list[Again]] = {}
    for job in jobs():
        if job.name in found:
            stream = "four tasks" if job.group == ABLATED else "26 tasks"
            groups.setdefault((stream, job.method.learner), []).append(found[job.name])

    def lines() -> Iterator[Sequence[str]]:
        for (stream, learner), ones in groups.items():
            same = sum(one.identical == one.tasks for one in ones)
            moved = [one.moved or 0.0 for one in ones]
            largest = max(map(abs, moved)), max(one.largest for one in ones)
            means = (percent(round(x, 4), 2) for x in (float(np.mean(moved)), *largest))
            first = Counter(one.differing[0] for one in ones if one.differing).most_common()
            differing = ", ".join(f"{task} {times}" for task, times in first) or "none"
            yield f"`{learner}`", stream, str(len(ones)), str(same), differing, *means

    names = "learner,stream,runs,with the same logits,first to differ,score at the end: mean change"
    return table(f"{names},largest change of a run,largest change of a task", lines())
