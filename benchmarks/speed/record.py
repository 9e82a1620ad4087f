"""What a row of a long stream costs besides learning: the record, what is derived, the checkpoint.

Run: python -m benchmarks.speed.record --tasks 1000. No learner: made-up cells, all of earlier tasks
reused, and two small tensors a task. Prints milliseconds of a row early and late, and what was
written; the last line is the whole record at the end.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from stream.config.run import CheckpointConfig
from stream.record.derived import Derivation
from stream.record.matrix import Cell
from stream.record.parts import MemoryRecord
from stream.record.run_record import RunRecord
from stream.run.checkpoint_manager import CheckpointManager
from tests.record.made_record import EXAMPLES, made_record

STEPS, WIDTH = 8, 16
NEAR = 25  # rows on either side of those that are told


def learn(record: RunRecord, index: int, draws: np.random.Generator) -> None:
    """Fill the record as learning and scoring a task does."""
    name = record.order[index]
    for on in range(index):
        above = record.score_matrix.above(index, on)
        assert above is not None
        record.cells[index][on] = above.reused()
    score, digest = float(draws.random()), draws.bytes(32).hex()
    record.cells[index][index] = Cell(score, digest, "measured", 0.01, correct="8PDw")
    record.ledger.add(name, 100, (1000 + 100 * index, 4000 + 400 * index), (0, 0))
    record.timing.learned(0.5, 64, STEPS)
    record.timing.evaluated(0.01, EXAMPLES * (index + 1))
    record.losses[name] = draws.random(STEPS).tolist()
    record.fingerprints[name] = draws.bytes(32).hex()


def made_learner() -> Any:
    """Return what a checkpoint asks of a learner: two tensors a task, nothing shared."""
    tensors = {name: torch.randn(WIDTH, WIDTH) for name in ("down", "up")}
    return SimpleNamespace(
        learned=[],
        tags=SimpleNamespace(parameter_isolation=True),
        task_state=lambda task: {n: t + hash(task) % 1000 for n, t in tensors.items()},
        shared_state=dict,
    )


def written_bytes() -> int:
    """Return how many bytes this process has given to files so far."""
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def measured(num_tasks: int, folder: Path) -> tuple[RunRecord, list[tuple[float, ...]]]:
    """Fill and commit every row; return the record, and milliseconds of each row's parts."""
    record = made_record(num_tasks, memory=MemoryRecord(promised=True))
    learner, draws = made_learner(), np.random.default_rng(0)
    manager, derivation = CheckpointManager(folder, CheckpointConfig()), Derivation()
    manager.begin()
    record.write(folder)
    found = []
    for index, name in enumerate(record.order):
        learner.learned.append(SimpleNamespace(name=name))
        times = [time.perf_counter()]
        learn(record, index, draws)
        times.append(time.perf_counter())
        derivation.update(record, whole=False)
        times.append(time.perf_counter())
        manager.commit_row(learner, record, index)
        times.append(time.perf_counter())
        found.append(tuple(np.diff(times) * 1000))
    return record, found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1000)
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        folder, before = Path(name), written_bytes()
        record, found = measured(tasks, folder)
        print(f"{'row':>6}{'cells':>9}{'derived':>9}{'on disk':>9}  ms, medians of {2 * NEAR}")
        for row in (0.15, 0.5, 0.95):
            place = int(row * tasks)
            near = found[max(place - NEAR, 0) : place + NEAR]
            print(
                f"{place:>6}" + "".join(f"{median(part):9.2f}" for part in zip(*near, strict=True))
            )
        rows = written_bytes() - before
        began = time.perf_counter()
        record.status = "complete"
        record.write(folder)
        wrote = time.perf_counter() - began
        again = RunRecord.read(folder)
        read = time.perf_counter() - began - wrote
        assert again == record
        began = time.perf_counter()
        again.derive()
        derived = time.perf_counter() - began
        size = (folder / "results.json").stat().st_size
    print(
        f"rows: {rows / 1e6:.1f} MB in all, {rows / tasks / 1e3:.1f} kB each; results.json: "
        f"{size / 1e6:.1f} MB, written in {wrote:.2f} s, read in {read:.2f} s, every metric anew "
        f"in {derived:.2f} s"
    )


if __name__ == "__main__":
    main()
