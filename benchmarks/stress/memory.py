"""Does memory grow over a stream by more than what each task leaves behind?

Run: python -m benchmarks.stress.memory [settings], such as learner=finetune. Learns a generated
stream in this process and prints the resident memory after every task, without what the learner
stores for its tasks. Exit code 1 when the last task's is more than a tenth above the third's.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.in_process import streamed

SMALL = ("data.train=64", "data.validation=32", "data.test=32", "training.min_steps=4")
FIRST, MOST = 3, 1.1


def resident() -> int:
    """Return the bytes of this process in memory (Linux), after a garbage collection."""
    gc.collect()
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status")


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, print, compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="*", help="as for run_stream.py; at least three tasks")
    given = parser.parse_args(arguments)
    after: list[int] = []
    record = streamed([*SMALL, *given.settings], lambda: after.append(resident()))
    encoder = record.ledger.base_parameters * 4
    rest = []
    for number, (total, row) in enumerate(zip(after, record.ledger.tasks, strict=True), start=1):
        own = row.stored_bytes - encoder
        rest.append(total - own)
        print(
            f"after {number:>3}: {rest[-1] / 2**20:8.1f} MiB without {own / 2**20:6.1f} "
            f"MiB of {number} tasks"
        )
    ratio = rest[-1] / rest[FIRST - 1]
    print(f"{record.learner}: after task {len(rest)} {ratio:.3f} x that after task {FIRST}")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
