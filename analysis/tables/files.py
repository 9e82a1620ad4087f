"""A comparison for other programs: CSV and JSON, with fractions and seconds."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.runs.cautions import cautions
from analysis.runs.collect import RecordedRun
from analysis.runs.comparable import check_comparable
from analysis.runs.estimate import CONFIDENCE, Estimate
from analysis.runs.methods import build_methods
from analysis.runs.names import group, settings_of
from analysis.runs.values import num_learned, relative_steps, trained_fraction
from analysis.tables.columns import INFERRED, SCORES, all_columns
from analysis.tables.paired import differences
from analysis.tables.references import References

JSON_SCHEMA = 1  # raised when a field is renamed or taken out


def run_values(runs: Sequence[RecordedRun]) -> list[dict[str, Any]]:
    """What there is to say of each run, by method; None where undefined.

    Raises:
        IncomparableRunsError: the runs did not see the same stream.
    """
    check_comparable(runs)
    references = References(runs)
    return [
        _values(label, run, references.values(run.record))
        for label, members in group(runs).items()
        for run in members
    ]


def _values(label: str, run: RecordedRun, against: Mapping[str, float | None]) -> dict[str, Any]:
    record = run.record
    return {
        "run": str(run.path),
        "method": label,
        "learner": record.learner,
        "stream": record.stream,
        "backbone": record.backbone,
        "source": record.source,
        "seed": record.seed,
        "status": record.status,
        "tasks_learned": num_learned(record),
        "tasks": len(record.order),
        **{column.name: column.read(record) for column in (*SCORES, *INFERRED)},
        **against,
        "trained_fraction": trained_fraction(record),
        "total_multiple": record.ledger.total_multiple,
        "relative_steps": relative_steps(record),
        "tasks_identical": record.memory.tasks_identical,
        "tasks_checked": record.memory.tasks_checked,
        "train_s": record.timing.train_s,
        "evaluate_s": record.timing.evaluate_s,
        "data_hash": record.data.hash,
    }


def difference_values(runs: Sequence[RecordedRun], against: str) -> list[dict[str, Any]]:
    """Each method's and measure's paired difference from ``against``."""
    return [
        {"method": label, "against": against, "measure": name, **_difference(difference)}
        for label, by_measure in differences(runs, against).items()
        for name, difference in by_measure.items()
    ]


def _difference(found: Estimate) -> dict[str, Any]:
    values = _estimate(found)
    return {"pairs": values["n"], **{name: values[name] for name in ("mean", "low", "high")}}


def _estimate(found: Estimate) -> dict[str, Any]:
    """An estimate as JSON values: null where unknown."""
    low, high = found.interval or (None, None)
    mean, sd = (None if math.isnan(x) else x for x in (found.mean, found.sd))
    return {"mean": mean, "sd": sd, "low": low, "high": high, "n": found.n}


def comparison_csv(runs: Sequence[RecordedRun]) -> str:
    """One line per run; empty where undefined."""
    rows = run_values(runs)
    return _csv_text(rows, list(rows[0]))


def difference_csv(runs: Sequence[RecordedRun], against: str) -> str:
    """One line per method and measure: `difference_values`."""
    names = ("method", "against", "measure", "pairs", "mean", "low", "high")
    return _csv_text(difference_values(runs, against), names)


def _csv_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def comparison_json(
    runs: Sequence[RecordedRun], against: str | None, left_out: Sequence[str]
) -> dict[str, Any]:
    """All that `compare` has to say, as JSON values; the fields are listed in docs/metrics.md.

    Args:
        runs: runs of one stream.
        against: the label of the method that others are compared with; None for none.
        left_out: a line for each run that is not compared.
    """
    record, references = runs[0].record, References(runs)
    return {
        "schema": JSON_SCHEMA,
        "stream": record.stream,
        "source": record.source,
        "split": record.split,
        "tasks": record.order,
        "interval": {"kind": "student_t", "confidence": CONFIDENCE, "over": "seeds"},
        "runs": run_values(runs),
        "methods": _methods(runs, references),
        "differences": [] if against is None else difference_values(runs, against),
        "notes": [*references.notes, *cautions(runs)],
        "left_out": list(left_out),
    }


def _methods(runs: Sequence[RecordedRun], references: References) -> list[dict[str, Any]]:
    """Each method with its settings, its seeds, and the estimate of every column."""
    labels = group(runs)
    return [
        {
            "method": label,
            "learner": method.learner,
            "complete": method.is_complete,
            "seeds": [run.record.seed for run in method.counted],
            "settings": settings_of(method.runs[0].record),
            "estimates": {c.name: _estimate(method.estimate(c.read)) for c in columns},
        }
        for columns in [all_columns(references)]
        for label, method in zip(labels, build_methods(runs), strict=True)
    ]
