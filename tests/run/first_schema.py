"""Writes a run folder in the form that it had before rows were appended, for tests.

``results.json`` held every cell whole and was written after every row; the manifest of a
checkpoint held that record, and named every group of tensors.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from stream.config.run import CheckpointConfig
from stream.record.run_record import RunRecord
from stream.run.checkpoint_manager import CheckpointManager


def rewrite(folder: Path) -> None:
    """Give a run folder the first form: its newest checkpoint alone."""
    saved = CheckpointManager(folder, CheckpointConfig()).latest()
    assert saved is not None
    status = RunRecord.read(folder).status
    record = {**whole_values(saved.record), "status": status}
    (folder / "results.json").write_text(json.dumps(record) + "\n")
    (folder / "rows.jsonl").unlink()
    for path in (folder / "checkpoint").glob("*.json*"):
        path.unlink()
    for path in (folder / "checkpoint/objects").glob("*.json"):
        path.unlink()
    state = {"results": {**record, "status": "partial"}, "training": saved.training}
    content = {"schema": 1, "groups": saved.checkpoint.groups, "state": state}
    text = json.dumps(content)
    digest = sha256(text.encode()).hexdigest()
    manifest = folder / "checkpoint" / f"manifest-{saved.checkpoint.generation}.json"
    manifest.write_text(f"{text}\n{digest}\n")


def whole_values(record: RunRecord) -> dict[str, Any]:
    """Return a record as JSON values of the first schema."""
    values = msgspec.to_builtins(record)
    for later in ("train_bytes", "gpu"):
        values.pop(later)
    cells = [[None if cell is None else asdict(cell) for cell in row] for row in record.cells]
    return {**values, "schema": 1, "cells": cells}
