"""Multiruns: what became of each job, told through files, so that it works across processes.

Jobs of one sweep may run in this process, in others, or on other machines. Each start of a sweep
has a folder ``outcomes/START`` with one JSON file a job.
"""

import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from stream.atomic_io import write_json
from stream.config.run import SCORE_NEUTRAL, RunConfig
from stream.errors import TrainingDivergedError, UserError, require
from stream.record.run_record import RunRecord
from stream.run.checkpoint import CheckpointStore
from stream.run.lock import exclusive_writer
from stream.run.settings import as_values, first_difference
from stream.run_folder import FILE_NAME, LOCK, LOG_NAME

OUTCOMES, UNFINISHED = "outcomes", "unfinished"
FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"


@dataclass(frozen=True)
class Outcome:
    """How a job ended, ``finished``, ``skipped`` or ``failed``, and why."""

    outcome: str
    reason: str = ""


class SweepReport(Callback):
    """Says at the end of a sweep what became of its jobs; Hydra calls it in the first process.

    ``start`` tells this start of the sweep from others.
    """

    failed: ClassVar[int] = 0
    """Jobs that failed in the sweep that ended last in this process."""

    def __init__(self, start: str):
        self._start = start

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print how many jobs ended in which way, and name the failed ones."""
        del kwargs
        folder = Path(config.hydra.sweep.dir)
        found = outcomes(folder, self._start)
        print("\n".join(closing_lines(folder, found)), flush=True)
        SweepReport.failed = sum(outcome.outcome == FAILED for outcome in found.values())


def run_job(
    build: Callable[[], RunConfig],
    folder: Path,
    start: str,
    run: Callable[[RunConfig, bool], float | None],
) -> float | None:
    """Run one job of a sweep; a failure is noted and printed, and does not stop the others.

    A job that finished in an earlier start is not run again; an unfinished one goes on from its
    checkpoint, or is set aside where it has none.

    Args:
        build: makes the job's configuration.
        folder: its run folder.
        start: what tells this start of the sweep from others.
        run: runs the job, from the start or (true) from its checkpoint; returns its average score.

    Returns:
        The average score, None for a job that failed.
    """
    outcome, score = Outcome(FINISHED), None
    try:
        outcome, score = _run_once(build(), folder, run)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other jobs go on
        outcome = Outcome(FAILED, " ".join(str(error).split()) or type(error).__name__)
        if not isinstance(error, UserError | TrainingDivergedError):
            _keep_traceback(folder)
    if outcome.outcome != FINISHED:
        print(f"{folder.name} {outcome.outcome}: {outcome.reason}", flush=True)
    path = folder.parent / OUTCOMES / start / f"{folder.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(outcome))
    return score


def _run_once(
    config: RunConfig, folder: Path, run: Callable[[RunConfig, bool], float | None]
) -> tuple[Outcome, float | None]:
    """Run a job unless it finished before; return how that ended and its average score.

    Raises:
        UserError: the folder holds another configuration, or another process writes to it.
    """
    done = finished_before(config, folder)
    if done is None:
        # Before anything is moved: what looks unfinished may be running in another start.
        with exclusive_writer(folder):
            done = finished_before(config, folder)  # it may have ended just now
            if done is None:
                resume = CheckpointStore(folder).latest() is not None
                if not resume:
                    set_aside(folder)
                return Outcome(FINISHED), run(config, resume)
    return Outcome(SKIPPED, "it finished before"), done.metrics["average_score"]


def _keep_traceback(folder: Path) -> None:
    """Append the present exception's traceback to the job's log."""
    with (folder / LOG_NAME).open("a", encoding="utf-8") as log:
        log.write(traceback.format_exc())


def finished_before(config: RunConfig, folder: Path) -> RunRecord | None:
    """Return the record of the same job if it finished earlier; None if it has to be run.

    Raises:
        UserError: the folder holds a run of another configuration.
    """
    if not (folder / FILE_NAME).exists():
        return None
    record = RunRecord.read(folder)
    ignored = [name for name in SCORE_NEUTRAL if name != "probe"]
    different = first_difference(record.config, as_values(config), ignored=ignored)
    require(
        different is None,
        f"{folder} holds a run of another configuration ({different}); choose another sweep name",
    )
    return record if record.status == "complete" else None


def set_aside(folder: Path) -> None:
    """Move what an unfinished job left to ``unfinished/`` of the sweep; nothing is deleted.

    Its results.json gets another name, so that reports do not take it for a run of the sweep. The
    lock stays where it is, because the caller holds it.
    """
    left = [path for path in folder.iterdir() if path.name != LOCK]
    if not left:
        return
    aside = folder.parent / UNFINISHED
    aside.mkdir(exist_ok=True)
    number = 1
    while (target := aside / f"{folder.name}-{number}").exists():
        number += 1
    target.mkdir()
    for path in left:
        path.rename(target / path.name)
    if (target / FILE_NAME).exists():
        (target / FILE_NAME).rename(target / f"unfinished-{FILE_NAME}")
    print(f"{folder.name}: an unfinished run was moved to {target}", flush=True)


def outcomes(folder: Path, start: str) -> dict[str, Outcome]:
    """Return the outcome of every job of one start, by the name of its folder, in order."""
    paths = (folder / OUTCOMES / start).glob("*.json")
    found = {path.stem: Outcome(**json.loads(path.read_text(encoding="utf-8"))) for path in paths}
    return dict(sorted(found.items(), key=lambda item: (_number(item[0]), item[0])))


def _number(name: str) -> int:
    """Return the job's number at the head of its folder's name."""
    head = name.partition("-")[0]
    return int(head) if head.isdigit() else -1


def closing_lines(folder: Path, found: Mapping[str, Outcome]) -> list[str]:
    """Return how many jobs ended in which way, and the failed ones by name."""
    count = {
        kind: sum(outcome.outcome == kind for outcome in found.values())
        for kind in (FINISHED, SKIPPED, FAILED)
    }
    lines = [f"sweep in {folder}: " + ", ".join(f"{n} {kind}" for kind, n in count.items())]
    failed = {name: outcome for name, outcome in found.items() if outcome.outcome == FAILED}
    return [*lines, *(f"  failed: {name}: {outcome.reason}" for name, outcome in failed.items())]
