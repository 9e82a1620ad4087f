"""Which runs may stand side by side, and which of them repeat one method with other seeds."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from analysis.runs.collect import Run

METHOD = ("learner", "training", "backbone")  # the parts of the config that make up a method


class IncomparableRunsError(ValueError):
    """Runs of different streams, orders or data were to be put side by side."""


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise `IncomparableRunsError`, naming the difference, unless all saw the same stream."""
    first = runs[0]
    for run in runs[1:]:
        difference = stream_difference(first.results, run.results)
        if difference:
            raise IncomparableRunsError(
                f"these runs cannot be compared: {first.path} and {run.path} differ in {difference}"
            )


def largest_comparable(
    runs: Sequence[Run], *, any_order: bool = False
) -> tuple[list[Run], list[str]]:
    """Split runs into the largest group that saw one stream, and a line for each other run.

    Of groups of equal size the one that comes first is taken.

    Args:
        runs: at least one.
        any_order: the same tasks and data in different orders are one stream.
    """
    groups: list[list[Run]] = []
    for run in runs:
        for members in groups:
            if not stream_difference(members[0].results, run.results, any_order=any_order):
                members.append(run)
                break
        else:
            groups.append([run])
    largest = max(groups, key=len)  # the first of the longest
    first, chosen = largest[0], {id(run) for run in largest}
    lines = []
    for run in runs:
        if id(run) not in chosen:
            difference = stream_difference(first.results, run.results, any_order=any_order)
            lines.append(f"left out: {run.path}: not the stream of {first.path}, {difference}")
    return largest, lines


def stream_difference(
    one: dict[str, Any], other: dict[str, Any], *, any_order: bool = False
) -> str | None:
    """What differs between two runs' streams, with both values; None where nothing does."""
    for key in ("stream", "source", "split"):
        if one.get(key) != other.get(key):
            return f"{key}: {one.get(key)} and {other.get(key)}"
    orders = [sorted(r["order"]) if any_order else r["order"] for r in (one, other)]
    what = "tasks" if any_order else "order"
    if len(orders[0]) != len(orders[1]):
        return f"{what}: {len(orders[0])} and {len(orders[1])} tasks"
    for number, names in enumerate(zip(*orders, strict=True), start=1):
        if names[0] != names[1]:
            return f"{what}: task {number} is {names[0]} and {names[1]}"
    hashes = one["data"]["hash"], other["data"]["hash"]
    if hashes[0] != hashes[1]:
        return f"data hash: {str(hashes[0])[:12]} and {str(hashes[1])[:12]}"
    return None


def method_labels(runs: Sequence[Run], ignore: Collection[str] = ()) -> list[str]:
    """Each run's learner and the settings in which it differs from the others.

    Settings of the learner itself are held against runs of the same learner, the rest (training,
    backbone) against all. Seeds are no setting: runs with equal labels repeat one method.

    Args:
        runs: runs of one stream.
        ignore: dotted settings that make no difference here, such as ``learner.size``.
    """
    settings = [settings_of(run.results) for run in runs]
    labels = []
    for run, own in zip(runs, settings, strict=True):
        learner = run.results["learner"]
        peers = [s for r, s in zip(runs, settings, strict=True) if r.results["learner"] == learner]
        notes = [
            f"{key.removeprefix('learner.')}={own.get(key)}"
            for key in sorted({key for peer in peers for key in peer} - set(ignore))
            for others in [peers if key.startswith("learner.") else settings]
            if any(other.get(key) != own.get(key) for other in others)
        ]
        labels.append(f"{learner} ({', '.join(notes)})" if notes else learner)
    return labels


def variant_labels(runs: Sequence[Run]) -> list[str]:
    """Each run's learner and the settings in which it differs from most runs of that learner.

    Shorter than `method_labels` where each run changes one setting of many.
    """
    settings = [settings_of(run.results) for run in runs]
    labels = []
    for run, own in zip(runs, settings, strict=True):
        learner = run.results["learner"]
        peers = [s for r, s in zip(runs, settings, strict=True) if r.results["learner"] == learner]
        usual = {
            key: Counter(peer.get(key) for peer in peers).most_common(1)[0][0]
            for key in sorted({key for peer in peers for key in peer})
        }
        notes = [
            f"{key.removeprefix('learner.')}={own.get(key)}"
            for key, value in usual.items()
            if own.get(key) != value
        ]
        labels.append(f"{learner} ({', '.join(notes)})" if notes else learner)
    return labels


def settings_of(results: dict[str, Any]) -> dict[str, str]:
    """The settings of a run's method by dotted key, as text."""
    return dict(_flatten(results))


def _flatten(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "backbone", results["backbone"]
    pending = [(name, results["config"].get(name)) for name in METHOD]
    for key, value in pending:  # grows while it is read
        if isinstance(value, dict):
            pending.extend((f"{key}.{name}", inner) for name, inner in value.items())
        elif key not in ("backbone", "backbone.name", "learner.name"):
            yield key, str(value)


def group(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each method by label, by seed within; methods in order of appearance."""
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for label, run in zip(method_labels(runs), runs, strict=True):
        groups[label].append(run)
    return {label: sorted(g, key=lambda run: run.results["seed"]) for label, g in groups.items()}


def repetitions(runs: Sequence[Run]) -> list[Run]:
    """The complete runs, one a seed: what a mean over seeds may be taken of."""
    first: dict[int, Run] = {}
    for run in runs:
        if run.results["status"] == "complete":
            first.setdefault(run.results["seed"], run)
    return list(first.values())


def num_learned(results: dict[str, Any]) -> int:
    """How many tasks have been learned and scored."""
    return sum(any(score is not None for score in row) for row in results["matrix"])
