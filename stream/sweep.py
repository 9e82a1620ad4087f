"""Multiruns: what became of each job, told through files, so that it works across processes.

Jobs of one sweep may run in this process, in others, or on other machines. Each start of a sweep
has a folder ``outcomes/START`` with one JSON file a job.
"""

import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from stream.config import RunConfig
from stream.errors import TrainingDivergedError, UserError, first_line, require
from stream.results import FILE_NAME, write_json

OUTCOMES, UNFINISHED = "outcomes", "unfinished"
FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"
# Settings that may differ between two starts of a job: none of them changes a score.
FREE = ("sweep", "tracking", "device", "cache", "save_weights", "experiment")


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
        print("\n".join(closing_lines(folder, found)), flush=True)  # noqa: T201
        SweepReport.failed = sum(outcome.outcome == FAILED for outcome in found.values())


def run_job(
    build: Callable[[], RunConfig],
    folder: Path,
    start: str,
    run: Callable[[RunConfig], float | None],
) -> float | None:
    """Run one job of a sweep; a failure is noted and printed, and does not stop the others.

    A job that finished in an earlier start is not run again; an unfinished one is set aside.

    Args:
        build: makes the job's configuration.
        folder: its run folder.
        start: what tells this start of the sweep from others.
        run: runs the job and returns its average score.

    Returns:
        The average score, None for a job that failed.
    """
    outcome, score = Outcome(FINISHED), None
    try:
        config = build()
        done = finished_before(config, folder)
        if done is None:
            set_aside(folder)
            score = run(config)
        else:
            outcome = Outcome(SKIPPED, "it finished before")
            score = done["metrics"]["average_score"]
    except Exception as error:  # noqa: BLE001 - whatever it is, the other jobs go on
        outcome = Outcome(FAILED, " ".join(str(error).split()) or type(error).__name__)
        if not isinstance(error, UserError | TrainingDivergedError):
            _keep_traceback(folder)
    if outcome.outcome != FINISHED:
        print(f"{folder.name} {outcome.outcome}: {outcome.reason}", flush=True)  # noqa: T201
    path = folder.parent / OUTCOMES / start / f"{folder.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(outcome))
    return score


def _keep_traceback(folder: Path) -> None:
    """Append the present exception's traceback to the job's log."""
    with (folder / "run.log").open("a", encoding="utf-8") as log:
        log.write(traceback.format_exc())


def finished_before(config: RunConfig, folder: Path) -> dict[str, Any] | None:
    """Return the results of the same job if it finished earlier; None if it has to be run.

    Raises:
        UserError: the folder holds a run of another configuration.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        recorded, complete = results["config"], results["status"] == "complete"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no record of a run: {first_line(error)}") from error
    wanted = json.loads(json.dumps(asdict(config)))
    different = next(_differences(recorded, wanted), None)
    require(
        different is None,
        f"{folder} holds a run of another configuration ({different}); choose another sweep name",
    )
    return results if complete else None


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield every setting that differs, with both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            if path or key not in FREE:
                yield from _differences(old.get(key), new.get(key), f"{path}{key}.")
    elif old != new:
        yield f"{path.rstrip('.')} was {old}, now {new}"


def set_aside(folder: Path) -> None:
    """Move what an unfinished job left to ``unfinished/`` of the sweep; nothing is deleted.

    Its results.json gets another name, so that reports do not take it for a run of the sweep.
    """
    if not any(folder.iterdir()):
        return
    aside = folder.parent / UNFINISHED
    aside.mkdir(exist_ok=True)
    number = 1
    while (target := aside / f"{folder.name}-{number}").exists():
        number += 1
    folder.rename(target)
    if (target / FILE_NAME).exists():
        (target / FILE_NAME).rename(target / f"unfinished-{FILE_NAME}")
    folder.mkdir()
    print(f"{folder.name}: an unfinished run was moved to {target}", flush=True)  # noqa: T201


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
