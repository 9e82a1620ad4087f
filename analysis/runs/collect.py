"""Finds runs on disk, reads their results.json and checks its form."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stream.metrics.within_task import probe_points
from stream.run_folder import FILE_NAME, SCHEMA

TOP_LEVEL = {
    "status": str,
    "learner": str,
    "stream": str,
    "backbone": str,
    "source": str,
    "order": list,
    "metric_names": list,
    "seed": int,
    "matrix": list,
    "metrics": dict,
    "memory": dict,
    "ledger": dict,
    "timing": dict,
    "data": dict,
    "config": dict,
}
NESTED = {
    "metrics": ("average_score", "learning_score", "bwt", "forgetting"),
    "memory": ("promised", "tasks_checked", "tasks_identical"),
    "ledger": ("base_parameters", "total_multiple", "tasks"),
    "timing": ("train_s", "evaluate_s"),
    "data": ("hash",),
}
LEDGER_ROW = ("trained_fraction", "stored_parameters", "buffer_examples", "buffer_bytes")


@dataclass(frozen=True)
class Run:
    """A run folder and the content of its results.json."""

    path: Path
    results: dict[str, Any]


def collect(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """Load every run at or below the paths, each once.

    Args:
        paths: run folders, folders of runs, or results.json files.

    Returns:
        The runs in the order of the paths, and one line for each path or file without use.
    """
    runs: dict[Path, Run] = {}
    problems: list[str] = []
    for path in paths:
        files = find(path)
        if not files:
            what = f"no {FILE_NAME} in or below it" if path.is_dir() else "no such folder"
            problems.append(f"{path}: {what}")
        for file in files:
            try:
                runs.setdefault(file.resolve(), Run(file.parent, load(file)))
            except (OSError, ValueError) as error:
                problems.append(f"{file}: {' '.join(str(error).split())}")
    return list(runs.values()), problems


def find(path: Path) -> list[Path]:
    """The results.json files at or below a path, sorted; none inside another run's folder."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for file in sorted(path.rglob(FILE_NAME), key=lambda file: (len(file.parts), file)):
        if not any(file.is_relative_to(run.parent) for run in found):
            found.append(file)
    return sorted(found)


def load(file: Path) -> dict[str, Any]:
    """Read one results.json; ValueError with the reason where it is not a run of this schema."""
    try:
        results = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("not valid JSON: nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error}") from error
    if not isinstance(results, dict) or "schema" not in results:
        raise ValueError("not the results of a run: it has no key 'schema'")
    if results["schema"] != SCHEMA:
        raise ValueError(f"schema {results['schema']!r} is not {SCHEMA}, the one understood here")
    _check_keys(results)
    _check_shapes(results)
    return results


def _refuse_constant(name: str) -> None:
    raise ValueError(f"not valid JSON: {name} (undefined must be null)")


def _check_keys(results: dict[str, Any]) -> None:
    for key, kind in TOP_LEVEL.items():
        if not isinstance(results.get(key), kind):
            raise ValueError(f"key {key!r} is missing or no {kind.__name__}")
    for key, names in NESTED.items():
        missing = [name for name in names if name not in results[key]]
        if missing:
            raise ValueError(f"key {key!r} lacks {missing[0]!r}")
    for key in ("learner", "training"):
        if not isinstance(results["config"].get(key, {}), dict):
            raise ValueError(f"config.{key} holds no settings")


def _check_shapes(results: dict[str, Any]) -> None:
    num_tasks, ledger = len(results["order"]), results["ledger"]
    names = [results["order"], results.get("titles") or results["order"], results["metric_names"]]
    if any(len(n) != num_tasks or not all(isinstance(x, str) for x in n) for n in names):
        raise ValueError("order, titles and metric_names are not one text a task")
    rows = [row for row in results["matrix"] if isinstance(row, list) and len(row) == num_tasks]
    if not 0 < num_tasks == len(rows) == len(results["matrix"]):
        raise ValueError(f"the matrix is not {num_tasks} x {num_tasks}, one row and column a task")
    _check_numbers("the matrix", [cell for row in rows for cell in row])
    _check_numbers("metrics", [results["metrics"][name] for name in NESTED["metrics"]])
    _check_numbers("memory", [results["memory"][name] for name in NESTED["memory"][1:]], "number")
    _check_numbers("timing", [results["timing"][name] for name in NESTED["timing"]])
    entries = ledger["tasks"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("ledger.tasks is no list of objects")
    _check_numbers("ledger", [ledger["total_multiple"]])
    for entry in entries:
        _check_numbers("ledger.tasks", [entry.get(name) for name in LEDGER_ROW], "number")
    _check_numbers("ledger", [ledger["base_parameters"]], "number")
    if ledger["base_parameters"] <= 0:
        raise ValueError("ledger.base_parameters is not positive")
    _check_curves(results)


def _check_curves(results: dict[str, Any]) -> None:
    losses, probe = results.get("losses") or {}, results.get("probe") or {"points": []}
    if not isinstance(losses, dict) or not all(isinstance(v, list) for v in losses.values()):
        raise ValueError("losses are not one list a task")
    _check_numbers("losses", [loss for curve in losses.values() for loss in curve], "number")
    try:
        points = probe_points(probe["points"])
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"probe: {error}") from error
    _check_numbers("probe", [s for p in points for s in (p.task, p.step, *p.scores)])
    _check_numbers("probe", [probe.get("every"), probe.get("rows")])


def _check_numbers(what: str, values: Iterable[object], kind: str = "number or null") -> None:
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number and not (value is None and kind == "number or null"):
            raise ValueError(f"{what}: {value!r} is no {kind}")


def train_s(results: dict[str, Any]) -> float:
    """Return the seconds of learning, all tasks."""
    return results["timing"]["train_s"]


def train_flops(results: dict[str, Any]) -> float | None:
    """Return the floating-point operations of learning, where they were counted."""
    return sum(results["flops"]["train"]) if results.get("flops") else None
