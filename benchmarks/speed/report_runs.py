"""Reporting on 200 run folders. Run: python -m benchmarks.speed.report_runs [RUN] [NUMBER].

Writes as many copies of one run's results.json (of RUN, or of a made-up run of 26 tasks) with other
seeds, learners and scores into a temporary folder, and times each command of analysis on all of
them in a fresh process, imports included; CPU seconds compare on a busy machine, too. Says whether
torch was imported.
"""

import hashlib
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec
import numpy as np

from stream.files.run_folder import FILE_NAME
from stream.record.ledger import LedgerRow
from stream.record.matrix import Cell
from stream.record.run_record import (
    DataRecord,
    LedgerRecord,
    MemoryRecord,
    RunRecord,
    TimingRecord,
)

ROOT = Path(__file__).parent.parent.parent
RUN = Path(sys.argv[1]) if len(sys.argv) > 1 else None
NUMBER = int(sys.argv[2]) if len(sys.argv) > 2 else 200
LEARNERS = ("adapter", "finetune", "replay", "independent")
NUM_TASKS, NUM_EXAMPLES, NUM_STEPS = 26, 200, 48

CHILD = """
import sys
from analysis.__main__ import main
code = main(sys.argv[1:])
print("TORCH" if "torch" in sys.modules else "no torch")
sys.exit(code)
"""


def made_up(generator: np.random.Generator) -> RunRecord:
    """A record as large as that of a real run of 26 tasks."""
    names = [f"made_up_task_{number}" for number in range(NUM_TASKS)]
    scores = generator.uniform(0.3, 0.9, (NUM_TASKS, NUM_TASKS)).tolist()
    return RunRecord(
        status="complete",
        learner="adapter",
        stream="made_up",
        backbone="minilm",
        source="generated",
        order=names,
        titles=names,
        metric_names=["accuracy"] * NUM_TASKS,
        labels={},
        seed=0,
        split="test",
        device="cpu",
        matrix=[[s if j <= i else None for j, s in enumerate(row)] for i, row in enumerate(scores)],
        cells=[
            [cell(generator) if j <= i else None for j in range(NUM_TASKS)]
            for i in range(NUM_TASKS)
        ],
        baseline=None,
        metrics=dict.fromkeys(("average_score", "learning_score", "bwt", "forgetting"), 0.5),
        memory=MemoryRecord(promised=False, tasks_checked=25, tasks_identical=0),
        ledger=made_up_ledger(names),
        timing=TimingRecord(train_s=60.0, evaluate_s=20.0),
        losses={name: generator.uniform(0, 2, NUM_STEPS).tolist() for name in names},
        probe=None,
        flops=None,
        fingerprints={},
        data=DataRecord(source="generated", hash=hashlib.sha256(b"made up").hexdigest()),
        versions={},
        config={"learner": {"lr": 1e-3, "size": 64}, "training": {"epochs": 3}},
    )


def made_up_ledger(names: Sequence[str]) -> LedgerRecord:
    """A ledger that grows with each task."""
    base = 22_713_216
    rows = [
        LedgerRow(
            task=name,
            trained_parameters=600_000,
            trained_fraction=0.026,
            trained_fraction_of_layers=0.057,
            stored_parameters=base + 600_000 * number,
            stored_bytes=4 * base,
            buffer_examples=0,
            buffer_bytes=0,
        )
        for number, name in enumerate(names, start=1)
    ]
    return LedgerRecord(
        base_parameters=base, encoder_layer_parameters=10_646_784, total_multiple=1.7, tasks=rows
    )


def cell(generator: np.random.Generator) -> Cell:
    """The evidence of one score."""
    correct = np.packbits(generator.integers(0, 2, NUM_EXAMPLES))
    return Cell(
        score=float(generator.uniform(0.3, 0.9)),
        digest=generator.bytes(32).hex(),
        state="measured",
        seconds=0.1,
        correct=b64encode(correct.tobytes()).decode(),
    )


def write_runs(folder: Path) -> int:
    """Write the run folders; return the bytes of one results.json."""
    generator = np.random.default_rng(0)
    base = made_up(generator) if RUN is None else RunRecord.read(RUN)
    for index in range(NUMBER):
        noise = generator.normal(0, 0.01, base.scores.shape)
        matrix = [
            [None if s is None else s + n for s, n in zip(*pair, strict=True)]
            for pair in zip(base.matrix, noise.tolist(), strict=True)
        ]
        learner, seed = LEARNERS[index % len(LEARNERS)], index // len(LEARNERS)
        target = folder / str(index)
        target.mkdir()
        msgspec.structs.replace(base, learner=learner, seed=seed, matrix=matrix).write(target)
    return (folder / "0" / FILE_NAME).stat().st_size


def commands(folder: Path) -> dict[str, list[str]]:
    """The commands to time."""
    runs, out = str(folder / "runs"), str(folder / "out")
    compare = ["compare", runs]
    tables = ["--csv", f"{out}.csv", "--markdown", f"{out}.md", "--latex", f"{out}.tex"]
    return {
        "compare": compare,
        "compare --against, CSV, Markdown, LaTeX": [*compare, "--against", LEARNERS[1], *tables],
        "figures of all together": [
            *("figures", runs, "--out", out),
            *("--only", "matrices,average,forgetting,growth,cost,tradeoff"),
        ],
        "report": ["report", runs, "--out", f"{out}.html"],
    }


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh Python with these arguments in the repository."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def children_cpu_s() -> float:
    """Return the CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        size = write_runs(folder / "runs")
        packages = ("numpy", "scipy", "matplotlib", "rich")
        versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        print(f"{versions}; {NUMBER} runs, results.json of {size / 1e3:.0f} kB each")
        for title, arguments in commands(folder).items():
            started, cpu = time.perf_counter(), children_cpu_s()
            done = run("-c", CHILD, *arguments)
            elapsed, cpu = time.perf_counter() - started, children_cpu_s() - cpu
            last = done.stdout.splitlines()[-1] if done.stdout else "failed: " + done.stderr
            used = f"{elapsed:6.1f} s, CPU {cpu:5.1f} s"
            print(f"{title:<42}{used}  exit code {done.returncode}, {last}")


if __name__ == "__main__":
    main()
