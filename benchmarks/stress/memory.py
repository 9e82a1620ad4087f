"""Does memory grow over a stream by more than what each task leaves behind?

Run: python -m benchmarks.stress.memory. Learns a generated stream in this process and prints the resident
memory after every task, without what the learner stores for its tasks. Exit code 1 when the last
task's is more than a tenth above the third's.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.in_process import streamed
from stream.record.run_record import RunRecord
from stream.report.tracking import NoTracking

SMALL = ("data.train=64", "data.validation=32", "data.test=32", "training.min_steps=4")
FIRST, MOST = 3, 1.1


def resident() -> int:
    """Return the bytes of this process in memory (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status")


class Memory(NoTracking):
    """A tracker that looks at memory after every row."""

    def __init__(self) -> None:
        super().__init__()
        self.rest: list[int] = []

    def row(self, index: int, record: RunRecord) -> None:
        """Note memory without what is stored for the tasks beyond the encoder itself."""
        gc.collect()
        ledger = record.ledger
        own = ledger.tasks[index].stored_bytes - ledger.base_parameters * 4
        self.rest.append(resident() - own)
        print(
            f"after {index + 1:>3}: {self.rest[-1] / 2**20:8.1f} MiB without {own / 2**20:6.1f} "
            f"MiB of {index + 1} tasks",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, print, compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("overrides", nargs="*", help="settings, such as learner=finetune")
    given = parser.parse_args(arguments)
    memory = Memory()
    results = streamed([*SMALL, *given.overrides], memory)
    ratio, last = memory.rest[-1] / memory.rest[FIRST - 1], len(memory.rest)
    print(f"{results['learner']}: after task {last} {ratio:.3f} x that after task {FIRST}")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
