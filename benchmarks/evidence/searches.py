"""The searches of docs/protocol.md, through `task-stream tune`, and what they chose.

Of each method ``OUT/searches/GROUP/METHOD.json`` is kept: every trial, with its score on each task.
What is there is not searched again. A second search of a method from another grid is kept as
``METHOD-2.json`` beside the first; the better trial of both is chosen.
"""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from benchmarks import ROOT
from benchmarks.evidence.methods import SECOND, Method
from benchmarks.evidence.plan import (
    IN_SEARCHES,
    TRIALS,
    Group,
    searched,
    with_settings,
)
from stream.record.run_record import RunRecord
from stream.tuning.record import FILE_NAME, LearnerRecord, TrialRecord, TuneRecord

SEARCHES = "searches"
PRESETS = "presets"
SCRATCH = ROOT / "runs/evidence"


class KeptSearch(msgspec.Struct, kw_only=True):
    """The search of one method.

    Attributes:
        command: the whole command, which may search other methods too.
        tasks: in the order in which they were learned.
        found: the trials, the best, and whether it lies inside what was tried.
        scores: by the number of a trial, the score of each task on its validation rows at the end.
    """

    command: str
    tasks: list[str]
    found: LearnerRecord
    scores: dict[int, list[float | None]]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read one."""
        return msgspec.json.decode(file.read_bytes(), type=cls)

    def write(self, file: Path) -> None:
        """Write it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @property
    def best(self) -> TrialRecord:
        """The best trial."""
        assert self.found.best is not None, f"all trials failed: {self.command}"
        return self.found.trials[self.found.best]

    @property
    def chosen(self) -> dict[str, float]:
        """The settings of the best trial."""
        return self.best.settings


def kept_search(out: Path, group: str, method: str) -> KeptSearch | None:
    """Return a search that is done; None where it is not.

    Args:
        out: the folder of all records.
        group: the name of a group.
        method: the name of a method.
    """
    file = out / SEARCHES / group / f"{method}.json"
    return KeptSearch.read(file) if file.exists() else None


def kept_searches(out: Path, group: str, method: str) -> list[KeptSearch]:
    """Return the searches of a method that are done: none, the first, or the first and the second.

    Args:
        out: the folder of all records.
        group: the name of a group.
        method: the name of a method.
    """
    first = kept_search(out, group, method)
    later = SECOND.get(method)
    second = None if later is None else kept_search(out, group, later.name)
    return [] if first is None else [first] if second is None else [first, second]


def best_search(searches: Sequence[KeptSearch]) -> KeptSearch:
    """Return the search with the best trial; of equal ones the first."""
    return max(searches, key=lambda search: search.best.score or 0.0)


def chosen_for(out: Path, group: Group, method: Method) -> dict[str, float] | None:
    """Return what was chosen for a method; None where its search, or one it needs, is not done.

    Args:
        out: the folder of all records.
        group: the runs that it is for.
        method: the method; nothing is chosen where nothing is searched.
    """
    head = head_rate(out, group.searches, method)
    if not method.searched:
        return head
    searches = kept_searches(out, group.searches, method.name)
    return None if not searches or head is None else {**head, **best_search(searches).chosen}


def head_rate(out: Path, group: str, method: Method) -> dict[str, float] | None:
    """Return the rate of the heads that a method takes from another; None where it is unknown.

    It is that of the other's first search: methods that took it are not run again for a second one.
    """
    if not method.head_of:
        return {}
    search = kept_search(out, group, method.head_of)
    return None if search is None else {"head_lr": search.chosen["head_lr"]}


def search(out: Path, more: Sequence[str], only: Callable[[str], bool]) -> None:
    """Search what is missing, methods side by side; those that need another one's rate afterwards.

    Args:
        out: the folder of all records.
        more: further settings of the command, such as ``data.root=DIR`` and ``workers=16``.
        only: tells which ``GROUP/METHOD`` are wanted.

    Raises:
        CalledProcessError: a search failed; what was found is kept.
    """
    for group, methods in searched():
        wanted = [m for m in methods if only(f"{group.name}/{m.name}")]
        missing = [m for m in wanted if kept_search(out, group.name, m.name) is None]
        for later in (False, True):
            now = [method for method in missing if bool(method.head_of) == later]
            if now:
                search_together(out, group, now, more)


def search_together(
    out: Path, group: Group, methods: Sequence[Method], more: Sequence[str]
) -> None:
    """Search methods with one command, and keep what was found of each that is done.

    Raises:
        CalledProcessError: the command failed.
    """
    # Named by what it searches, so that the same command goes on with it.
    names = "-".join(method.name for method in methods)
    folder = SCRATCH / f"search-{group.name}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"
    given = tune_settings(out, group, methods)
    presets = write_presets(methods, folder / PRESETS)
    typed = ["--config-dir", str(presets), *with_settings(given, more), f"tune.out={folder}"]
    command = [sys.executable, "-m", "stream", "tune", *typed]
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    finally:
        keep(out, group, folder, "task-stream tune " + " ".join(given))


def tune_settings(out: Path, group: Group, methods: Sequence[Method]) -> list[str]:
    """Return what the command says of a search, without where things are."""
    given = [f"learner={','.join(method.name for method in methods)}"]
    for method in methods:
        for key, value in (head_rate(out, group.name, method) or {}).items():
            given.append(f"{method.name}.{key}={value}")
        for key, values in method.searched.items():
            given.append(f"{method.name}.{key}={','.join(map(str, values))}")
    return [*given, *group.settings, *IN_SEARCHES, f"tune.trials={TRIALS}"]


def write_presets(methods: Sequence[Method], folder: Path) -> Path:
    """Write a preset of each method that is a learner with settings; return their folder.

    A search knows learners by name, and some methods are the same one in several sizes.
    """
    (folder / "learner").mkdir(parents=True, exist_ok=True)
    for method in methods:
        if method.name != method.learner:
            lines = [
                f"defaults: [{method.learner}, _self_]",
                *(f"{k}: {v}" for k, v in method.fixed.items()),
            ]
            (folder / "learner" / f"{method.name}.yaml").write_text("\n".join(lines) + "\n")
    return folder


def keep(out: Path, group: Group, folder: Path, command: str) -> None:
    """Keep the searches of a folder that are done, each with the scores of its trials."""
    file = folder / FILE_NAME
    if not file.exists():
        return
    record = msgspec.json.decode(file.read_bytes(), type=TuneRecord)
    for name, found in record.learners.items():
        if found.preset is None:
            continue  # it was stopped, or every trial failed
        scores = {}
        for trial in found.trials:
            if trial.score is not None:
                run = RunRecord.read(folder / "trials" / trial.runs[0].folder)
                scores[trial.number] = run.matrix[-1]
        kept = KeptSearch(command=command, tasks=record.tasks, found=found, scores=scores)
        kept.write(out / SEARCHES / group.name / f"{name}.json")
