"""Compares runs of one stream: which may stand side by side, one table, one CSV."""

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, stdev
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from analysis.collect import Run
from stream.wording import DASH, TIMES, percent

METHOD = ("learner", "training", "backbone")  # the parts of the config that make up a method
METRICS = ("average_score", "learning_score", "bwt", "forgetting")

Column = tuple[str, Callable[[dict[str, Any]], float | None], Callable[[float | None], str]]


class IncomparableRunsError(ValueError):
    """Runs of different streams, orders or data were to be put side by side."""


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise `IncomparableRunsError`, naming the difference, unless all saw the same stream."""
    first = runs[0]
    for run in runs[1:]:
        difference = _difference(first.results, run.results)
        if difference:
            raise IncomparableRunsError(
                f"these runs cannot be compared: {first.path} and {run.path} differ in {difference}"
            )


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """What differs between two runs' streams, with both values; None where nothing does."""
    for key in ("stream", "source", "split"):
        if one.get(key) != other.get(key):
            return f"{key}: {one.get(key)} and {other.get(key)}"
    lengths = len(one["order"]), len(other["order"])
    if lengths[0] != lengths[1]:
        return f"order: {lengths[0]} and {lengths[1]} tasks"
    for number, names in enumerate(zip(one["order"], other["order"], strict=True), start=1):
        if names[0] != names[1]:
            return f"order: task {number} is {names[0]} and {names[1]}"
    hashes = one["data"]["hash"], other["data"]["hash"]
    if hashes[0] != hashes[1]:
        return f"data hash: {str(hashes[0])[:12]} and {str(hashes[1])[:12]}"
    return None


def method_labels(runs: Sequence[Run]) -> list[str]:
    """Each run's learner and the settings in which it differs from the others.

    Settings of the learner itself are held against runs of the same learner, the rest (training,
    backbone) against all. Seeds are no setting: runs with equal labels repeat one method.
    """
    settings = [dict(_flatten(run.results)) for run in runs]
    labels = []
    for run, own in zip(runs, settings, strict=True):
        learner = run.results["learner"]
        peers = [s for r, s in zip(runs, settings, strict=True) if r.results["learner"] == learner]
        notes = [
            f"{key.removeprefix('learner.')}={own.get(key)}"
            for key in sorted({key for peer in peers for key in peer})
            for others in [peers if key.startswith("learner.") else settings]
            if any(other.get(key) != own.get(key) for other in others)
        ]
        labels.append(f"{learner} ({', '.join(notes)})" if notes else learner)
    return labels


def _flatten(results: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings of a run's method as (dotted key, value)."""
    yield "backbone", results["backbone"]
    pending = [(name, results["config"].get(name)) for name in METHOD]
    for key, value in pending:  # grows while it is read
        if isinstance(value, dict):
            pending.extend((f"{key}.{name}", inner) for name, inner in value.items())
        elif key not in ("backbone", "backbone.name", "learner.name"):
            yield key, str(value)


def trained_fraction(results: dict[str, Any]) -> float | None:
    """Mean over the tasks of the trained parameters as a fraction of the base."""
    fractions = [entry["trained_fraction"] for entry in results["ledger"]["tasks"]]
    return mean(fractions) if fractions else None


def elapsed_s(results: dict[str, Any]) -> float | None:
    """Seconds of training and evaluation together."""
    parts = [results["timing"][name] for name in ("train_s", "evaluate_s")]
    return None if None in parts else sum(parts)


def show_multiple(value: float | None) -> str:
    """A multiple of the base model's parameters."""
    return DASH if value is None else f"{value:.2f}"


def show_seconds(value: float | None) -> str:
    """Seconds, the tenths only of small ones."""
    return DASH if value is None else f"{value:.{1 if value < 10 else 0}f}"


COLUMNS: tuple[Column, ...] = (
    ("average\nscore %", lambda results: results["metrics"]["average_score"], percent),
    ("learning\nscore %", lambda results: results["metrics"]["learning_score"], percent),
    ("BWT\n%", lambda results: results["metrics"]["bwt"], percent),
    ("forget-\nting %", lambda results: results["metrics"]["forgetting"], percent),
    ("trained\n%/task", trained_fraction, lambda value: percent(value, 2)),
    (f"total\n{TIMES} base", lambda results: results["ledger"]["total_multiple"], show_multiple),
    ("time\ns", elapsed_s, show_seconds),
)
PARTS = {"all": slice(None), "scores": slice(4), "costs": slice(4, None)}  # of COLUMNS and memory


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


def comparison_table(runs: Sequence[Run], part: str = "all") -> Table:
    """One line a run, and mean and deviation of each method that was run with several seeds.

    Args:
        runs: runs of one stream.
        part: ``all``, or for narrow screens only its ``scores`` or its ``costs``.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    title = Text(table_title(runs[0].results), style="bold")
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names, values = (
        ("learner", "data", "seed", "tasks"),
        [*(name for name, _, _ in COLUMNS), "memory"],
    )
    for name in names:
        table.add_column(name, vertical="bottom", overflow="fold")
    for name in values[PARTS[part]]:
        table.add_column(name, justify="right", vertical="bottom", overflow="fold")
    for label, members in group(runs).items():
        rows = [_run_row(label, run.results) for run in members]
        if len(repeated := repetitions(members)) > 1:
            rows.append(_mean_row(repeated))
        for row in rows:
            table.add_row(*row[: len(names)], *row[len(names) :][PARTS[part]])
        table.add_section()
    return table


def table_title(results: dict[str, Any]) -> str:
    """What all runs of a table have in common."""
    data = "generated data" if results["source"] == "generated" else f"data: {results['source']}"
    note = ", validation scores" if results.get("split") == "validation" else ""
    return f"{results['stream']}, {len(results['order'])} tasks, {data}{note}"


def num_learned(results: dict[str, Any]) -> int:
    """How many tasks have been learned and scored."""
    return sum(any(score is not None for score in row) for row in results["matrix"])


def _run_row(label: str, results: dict[str, Any]) -> list[Text]:
    num_tasks, done = len(results["order"]), num_learned(results)
    tasks = str(num_tasks) if results["status"] == "complete" else f"{done}/{num_tasks}"
    values = [show(read(results)) for _, read, show in COLUMNS]
    row = [label, results["source"], str(results["seed"]), tasks, *values]
    return [*map(Text, row), show_memory(results["memory"])]


def _mean_row(runs: Sequence[Run]) -> list[Text]:
    row = ["mean ± sd", runs[0].results["source"], f"n={len(runs)}", ""]
    for _, read, show in COLUMNS:
        values = [value for run in runs if (value := read(run.results)) is not None]
        whole = len(values) == len(runs)
        row.append(f"{show(mean(values))}±{show(stdev(values))}" if whole else DASH)
    return [Text(cell, style="bold") for cell in [*row, ""]]


def show_memory(memory: dict[str, Any]) -> Text:
    """Tasks whose last logits equal their first, of those checked; a broken promise in red."""
    checked, identical = memory["tasks_checked"], memory["tasks_identical"]
    broken = memory["promised"] and identical < checked
    text = f"{identical}/{checked}" if checked else DASH
    return Text(f"{text} BROKEN", style="bold red") if broken else Text(text)


def comparison_csv(runs: Sequence[Run]) -> str:
    """One line a run for other programs: fractions and seconds, empty where undefined."""
    check_comparable(runs)
    rows = []
    for label, members in group(runs).items():
        rows.extend(_csv_row(label, run) for run in members)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _csv_row(label: str, run: Run) -> dict[str, Any]:
    results = run.results
    same = ("learner", "stream", "backbone", "source", "seed", "status")
    return {
        "run": str(run.path),
        "method": label,
        **{name: results[name] for name in same},
        "tasks_learned": num_learned(results),
        "tasks": len(results["order"]),
        **{name: results["metrics"][name] for name in METRICS},
        "trained_fraction": trained_fraction(results),
        "total_multiple": results["ledger"]["total_multiple"],
        **{name: results["memory"][name] for name in ("tasks_identical", "tasks_checked")},
        "train_s": results["timing"]["train_s"],
        "evaluate_s": results["timing"]["evaluate_s"],
        "data_hash": results["data"]["hash"],
    }
