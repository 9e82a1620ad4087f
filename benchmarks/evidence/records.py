"""The kept records: ``OUT/runs/GROUP/METHOD-sSEED/results.json``, which the program reads too.

They lack what is large and what the command gives again: losses of single steps, where every row
was read, the settings of tasks, and the evidence of cells that are neither of a task's own row nor
of the last one.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.evidence.plan import SEEDS
from stream.record.run_record import RunRecord
from stream.run_folder import FILE_NAME

RUNS = "runs"
AGAIN = "again.jsonl"
VERIFIED = "verify.txt"


class Again(msgspec.Struct, kw_only=True):
    """A run that was made again.

    Attributes:
        run: its name, ``GROUP/METHOD-sSEED``.
        tasks: how many it has.
        identical: how many have the same logits, right after they were learned and at the end.
        largest: the largest difference of a score, a fraction.
        devices: where it ran at first, and now.
    """

    run: str
    tasks: int
    identical: int
    largest: float
    devices: tuple[str, str]


def slim(record: RunRecord) -> RunRecord:
    """Return a record without what is large and not needed to judge the run."""
    last = len(record.order) - 1
    cells = [
        [cell if i in (j, last) else None for j, cell in enumerate(row)]
        for i, row in enumerate(record.cells)
    ]
    config = {key: value for key, value in record.config.items() if key != "task"}
    data = msgspec.structs.replace(record.data, accounts={})
    return msgspec.structs.replace(record, losses={}, data=data, cells=cells, config=config)


def keep(record: RunRecord, folder: Path) -> None:
    """Write the slim record of a complete run."""
    folder.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode(slim(record))
    (folder / FILE_NAME).write_bytes(content + b"\n")


class Records:
    """The kept records of a folder.

    Args:
        out: the folder.
    """

    def __init__(self, out: Path):
        files = sorted((out / RUNS).glob(f"*/*/{FILE_NAME}"))
        self.out = out
        self.runs = {f"{f.parent.parent.name}/{f.parent.name}": RunRecord.read(f) for f in files}

    def seeds(self, group: str, method: str) -> dict[int, RunRecord]:
        """Return the runs of a method, by seed."""
        return dict(self._seeds(group, method))

    def five(self, group: str, method: str) -> list[RunRecord]:
        """Return the runs of a method with the seeds of tables; those that there are."""
        found = self.seeds(group, method)
        return [found[seed] for seed in SEEDS if seed in found]

    def _seeds(self, group: str, method: str) -> Iterator[tuple[int, RunRecord]]:
        for name, run in self.runs.items():
            of, _, seed = name.rpartition("-s")
            if of == f"{group}/{method}":
                yield int(seed), run
