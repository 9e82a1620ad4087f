"""Scores of a run without the adapters of ranges of layers: ``layer_ranges.json`` in its folder."""

from pathlib import Path

from analysis.layer_ranges import NAME, as_json, measured
from stream.atomic_io import write_json
from stream.record.run_record import RunRecord

LAYERS = f"{NAME}.json"


def remove_layers(folder: Path) -> None:
    """Measure all tasks of a run on its test rows, on the device where it ran, and write them.

    Args:
        folder: the run folder, with its checkpoint.
    """
    record = RunRecord.read(folder)
    found = measured(folder, record.order, record.split, record.device)
    write_json(folder / LAYERS, as_json(found))
