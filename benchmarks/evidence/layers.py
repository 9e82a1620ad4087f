"""Scores of a run without the adapters of ranges of layers: ``layer_ranges.json`` in its folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.layer_ranges import NAME, as_json, measured
from benchmarks.evidence.ablations import AS_CHOSEN
from benchmarks.evidence.plan import ABLATED
from benchmarks.evidence.records import RUNS, Records
from stream.files.atomic import write_json
from stream.record.run_record import RunRecord

LAYERS = f"{NAME}.json"


@dataclass(frozen=True)
class WithoutLayers:
    """The scores of one task of one run, on test rows.

    Attributes:
        full: with all adapters.
        without: float64 [L, L]; (i, j) is without layers i to j, NaN where j is before i.
        majority: of always giving the most frequent label.
    """

    full: float
    without: np.ndarray
    majority: float


def named_range(first: int, last: int) -> str:
    """Return what a range of layers is called.

    >>> named_range(2, 2), named_range(0, 1), named_range(0, 2)
    ('2', '0 and 1', '0 to 2')
    """
    if first == last:
        return str(first)
    return f"{first} {'and' if last == first + 1 else 'to'} {last}"


def remove_layers(folder: Path) -> None:
    """Measure all tasks of a run on its test rows, on the device where it ran, and write them.

    Args:
        folder: the run folder, with its checkpoint.
    """
    record = RunRecord.read(folder)
    found = measured(folder, record.order, record.split, record.device)
    write_json(folder / LAYERS, as_json(found))


def read_layers(records: Records, seed: int) -> dict[str, WithoutLayers] | None:
    """Return what was measured of the run with a seed, by task; None where nothing is kept."""
    file = records.out / RUNS / ABLATED.name / f"{AS_CHOSEN.name}-s{seed}" / LAYERS
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    return {
        task: WithoutLayers(
            one["full"],
            np.array(one["without_first_to_last"], np.float64),  # null becomes NaN
            one["majority"],
        )
        for task, one in content.items()
    }
