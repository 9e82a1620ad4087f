"""What a reader must know before trusting means over runs, a line each."""

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.runs.collect import RecordedRun
from analysis.runs.methods import Method, build_methods
from analysis.runs.values import num_learned, relative_steps
from stream.formatting import TIMES, count, visible
from stream.record.run_record import RunRecord

NOT_RECORDED = "not recorded"
MOST_TASKS = 8  # that a line names


def cautions(runs: Sequence[RecordedRun]) -> list[str]:
    """What to know of the means.

    Runs that no mean counts and why; tasks whose training may have failed; steps, versions and
    devices in which counted runs differ.

    Args:
        runs: runs of one stream.
    """
    methods = build_methods(runs)
    lines = [line for method in methods for line in _not_counted(method)]
    lines += _unlearned(methods)
    counted = [run.record for m in methods for run in m.counted]
    return [*lines, *_unequal_steps(counted), *_differences(counted)]


def _not_counted(method: Method) -> Iterator[str]:
    """Say which runs are in no mean: unfinished ones, and seeds that are there already."""
    counted = {id(run) for run in method.counted}
    by_seed = {run.record.seed: run for run in method.counted}
    for run in method.runs:
        record, total = run.record, len(run.record.order)
        unfinished = f"{num_learned(record)} of {count(total, 'task')} learned: {run.path}"
        if record.status != "complete":
            in_means = id(run) in counted
            yield f"unfinished, {unfinished}" if in_means else f"not in a mean, {unfinished}"
        elif id(run) not in counted:
            first = by_seed[record.seed]
            what = "a copy" if _is_copy(first.record, record) else f"seed {record.seed} again"
            yield f"not in a mean, {what}: {run.path} (counted: {first.path})"


def _unlearned(methods: Sequence[Method]) -> Iterator[str]:
    """Say of which tasks all texts got one answer right after learning, and with which seeds.

    Methods of which the same is to be said share a line.
    """
    alike: dict[str, list[str]] = {}
    for method in methods:
        seeds: dict[str, list[str]] = {}
        for run in method.counted:
            for place in run.record.unlearned:
                seeds.setdefault(run.record.titles[place], []).append(str(run.record.seed))
        if seeds:
            found = [f"{visible(title, 60)} ({_seeds(of)})" for title, of in seeds.items()]
            more = f", and {len(found) - MOST_TASKS} more" if len(found) > MOST_TASKS else ""
            told = ", ".join(found[:MOST_TASKS]) + more
            alike.setdefault(told, []).append(visible(method.label, 60))
    for told, names in alike.items():
        who = ", ".join(names)
        yield f"{who}: training may have failed, all texts of a task got one answer: {told}"


def _is_copy(one: RunRecord, other: RunRecord) -> bool:
    """Whether two records are of the same run: no two take the same time to the last digit."""
    pairs = [(r.timing, r.cells, r.matrix) for r in (one, other)]
    return pairs[0] == pairs[1]


def _unequal_steps(records: Sequence[RunRecord]) -> Iterator[str]:
    """Say which learners have more or fewer training steps than the plain schedule gives a task."""
    known = {(_chosen(r), round(steps, 2)) for r in records if (steps := relative_steps(r))}
    if len({steps for _, steps in known}) > 1:
        unequal = sorted((steps, learner) for learner, steps in known if steps != 1)
        told = ", ".join(f"{visible(learner, 60)} {steps:.2f} {TIMES}" for steps, learner in unequal)
        yield f"learners differ in training steps: {told} those of the plain schedule"


def _chosen(record: RunRecord) -> str:
    """The learner, and whether each task chose among candidates, whose steps all count."""
    return f"{record.learner} with select" if record.config.get("select") else record.learner


def _differences(records: Sequence[RunRecord]) -> Iterator[str]:
    """Say in which versions and devices runs differ, each with its number of runs."""
    names = sorted({name for record in records for name in record.versions})
    for name in names:
        yield from _difference(name, [r.versions.get(name, NOT_RECORDED) for r in records])
    yield from _difference("device", [record.computed_on for record in records])


def _difference(name: str, values: Sequence[str]) -> Iterator[str]:
    found = Counter(values)
    if len(found) > 1:
        shown = ", ".join(f"{visible(v, 60)} ({count(n, 'run')})" for v, n in found.items())
        yield f"runs differ in {visible(name, 60)}: {shown}"


def _seeds(numbers: Sequence[str]) -> str:
    """Return seeds in words: ``seed 1``, ``seeds 1, 3``."""
    return f"seed{'s' * (len(numbers) > 1)} {', '.join(numbers)}"
