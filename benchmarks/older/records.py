"""The records of results/houlsby26: up to 20,000 rows a task, three seeds, settings of a search."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord


@dataclass(frozen=True)
class Records:
    """The records of a folder: by group and name, such as ``given/adapter64-s1``."""

    folder: Path
    runs: dict[str, RunRecord]

    @classmethod
    def of(cls, folder: Path, groups: Sequence[str]) -> "Records":
        """Read every record of some groups."""
        files = sorted(file for group in groups for file in folder.glob(f"{group}/*/{FILE_NAME}"))
        names = (str(file.parent.relative_to(folder)) for file in files)
        return cls(folder, dict(zip(names, map(RunRecord.read, files), strict=True)))

    def seeds(self, group: str, learner: str) -> list[RunRecord]:
        """Return a learner's runs, one per seed."""
        pattern = re.compile(rf"{group}/{learner}-s\d+")
        return [run for name, run in self.runs.items() if pattern.fullmatch(name)]

    def validation(self, learner: str, seed: int) -> dict[str, float]:
        """Return an adapter run's score of each task on validation rows; empty without any."""
        path = self.folder / "given" / f"{learner}-s{seed}" / "validation.json"
        found = path.read_bytes() if path.exists() else b"{}"
        return msgspec.json.decode(found, type=dict[str, float])


def identical_of(counts: Sequence[int]) -> str:
    """Return how many of the 25 earlier tasks were bit-identical, over runs: least to most."""
    return f"{' to '.join(map(str, sorted({min(counts), max(counts)})))} of 25"
