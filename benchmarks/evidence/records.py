"""The kept records: ``OUT/runs/GROUP/METHOD-sSEED/results.json``, which the program reads too.

Beside it ``at_once.json`` says how many runs were made at once, ``verify.txt`` what `task-stream
verify` said, where it was asked, and ``layer_ranges.json`` what is scored without some adapters
(`benchmarks.evidence.layers`). Records lack what is large and what the command gives again: losses
of single steps, where every row was read, the settings of tasks, and the evidence of cells that are
neither of a task's own row nor of the last one.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from benchmarks.evidence.methods import BY_NAME, SECOND, Method
from benchmarks.evidence.plan import MINILM, SEEDS, Job, jobs
from benchmarks.evidence.searches import best_search, chosen_for, kept_searches
from stream.files.run_folder import FILE_NAME
from stream.record.run_record import RunRecord

RUNS = "runs"
AGAIN = "again.jsonl"
REPLACED = "replaced.jsonl"
VERIFIED = "verify.txt"
AT_ONCE = "at_once.json"


class Again(msgspec.Struct, kw_only=True):
    """A run that was made again.

    Attributes:
        run: its name, ``GROUP/METHOD-sSEED``.
        tasks: how many it has.
        identical: how many have the same logits, right after they were learned and at the end.
        largest: the largest difference of a score, a fraction.
        devices: where it ran at first, and now.
        differing: the tasks with other logits right after they were learned, in the order of the
            run; None in lines that were written before this was noted.
        moved: the score at the end, less that of the first time; None like the tasks.
    """

    run: str
    tasks: int
    identical: int
    largest: float
    devices: tuple[str, str]
    differing: list[str] | None = None
    moved: float | None = None


class AtOnce(msgspec.Struct, kw_only=True, frozen=True):
    """What a run shared its machine with.

    Attributes:
        runs: how many runs one command made at once, at most, this one among them; other commands
            may have run beside it.
        gpus: on how many GPUs; 0 on a CPU.
    """

    runs: int
    gpus: int


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


def keep(record: RunRecord, folder: Path, at_once: AtOnce | None = None) -> None:
    """Write the slim record of a complete run, and what it shared its machine with."""
    folder.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode(slim(record))
    (folder / FILE_NAME).write_bytes(content + b"\n")
    if at_once is not None:
        (folder / AT_ONCE).write_bytes(msgspec.json.encode(at_once) + b"\n")


class Records:
    """The kept records of a folder.

    Attributes:
        out: the folder.
        kept: all records, by ``GROUP/METHOD-sSEED``.
        runs: those that tables are made of. A method whose second search chose other settings than
            its first has runs of both until they are all made again, and no table mixes them: those
            of the first count until there is one of each seed with those of the second.
        pending: the methods of which those of the first still count.

    Args:
        out: the folder.
    """

    def __init__(self, out: Path):
        files = sorted((out / RUNS).glob(f"*/*/{FILE_NAME}"))
        self.out = out
        self.kept = {f"{f.parent.parent.name}/{f.parent.name}": RunRecord.read(f) for f in files}
        planned = {job.name: job for job in jobs()}
        self.pending = [name for name in SECOND if self._waits(BY_NAME[name])]
        self.runs = {
            name: run
            for name, run in self.kept.items()
            if name not in planned or self._counts(planned[name], run)
        }

    def _waits(self, method: Method) -> bool:
        """Whether a second search chose other settings, and not all runs with them are there."""
        searches = kept_searches(self.out, MINILM.name, method.name)
        if not searches or best_search(searches) is searches[0]:
            return False
        given = [Job(MINILM, method, seed) for seed in SEEDS]
        chosen = best_search(searches).chosen
        return not all(
            job.name in self.kept and has_settings(job, self.kept[job.name], chosen)
            for job in given
        )

    def _counts(self, job: Job, run: RunRecord) -> bool:
        """Whether a run has the settings that tables are made of; so where none are kept."""
        if job.method.name in self.pending and job.group.searches == MINILM.name:
            first = kept_searches(self.out, MINILM.name, job.method.name)[0]
            return has_settings(job, run, first.chosen)
        chosen = chosen_for(self.out, job.group, job.method)
        return chosen is None or has_settings(job, run, chosen)

    def at_once(self, name: str) -> AtOnce | None:
        """Return what a run shared its machine with; None where that was not kept."""
        file = self.out / RUNS / name / AT_ONCE
        return msgspec.json.decode(file.read_bytes(), type=AtOnce) if file.exists() else None

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


def has_settings(job: Job, run: RunRecord, chosen: dict[str, float]) -> bool:
    """Whether a run's learner has settings that were chosen for it."""
    return _of_learner(run.overrides or []) == _of_learner(job.settings(chosen))


def _of_learner(settings: Iterable[str]) -> set[str]:
    return {text for text in settings if text.startswith("learner.")}
