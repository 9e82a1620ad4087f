"""Trackers: views of a run elsewhere. The record of truth is results.json.

Weights & Biases may be missing, unreachable or broken: nothing of that fails or delays a run.
"""

import hashlib
import json
import logging
import netrc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import numpy as np

from stream.config.run import SCORE_NEUTRAL
from stream.errors import choose, first_line
from stream.metrics import summarize

LOG = logging.getLogger(__name__)
MODES = ("auto", "online", "offline")
INIT_TIMEOUT_S = 20


class Tracker(Protocol):
    """What the orchestrator asks of a tracker; used in a ``with`` block, which closes it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def start(self, folder: Path, results: Mapping[str, Any]) -> None:
        """Open the run; ``results`` is the record before the first task."""
        ...

    def row(self, index: int, results: Mapping[str, Any]) -> None:
        """Show the row after task ``index`` (from 0)."""
        ...

    def finish(self, results: Mapping[str, Any], figures: list[Path]) -> None:
        """Show the whole record and the figures."""
        ...


@dataclass
class NoTracking:
    """No tracker."""

    name: str = "none"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def start(self, folder: Path, results: Mapping[str, Any]) -> None:
        """Do nothing."""

    def row(self, index: int, results: Mapping[str, Any]) -> None:
        """Do nothing."""

    def finish(self, results: Mapping[str, Any], figures: list[Path]) -> None:
        """Do nothing."""


@dataclass
class WandbTracking:
    """Weights & Biases: offline unless a login exists; never asks, hangs or fails the run."""

    name: str = "wandb"
    project: str = "task-stream"
    entity: str | None = None
    mode: str = "auto"

    def __post_init__(self) -> None:
        """Refuse unknown modes."""
        choose("tracking.mode", self.mode, MODES)

    def __enter__(self) -> Self:
        self._run: Any = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the run; one that ended by an error is marked as failed."""
        run, self._run = self._run, None
        if run is not None:
            self._try(lambda: run.finish(exit_code=0 if kind is None else 1))

    def start(self, folder: Path, results: Mapping[str, Any]) -> None:
        """Open one W&B run whose files lie in the run folder; offline if no server answers.

        After an interruption it is a new W&B run, and gets the rows done before: so the last run
        of a folder holds everything, and no step comes twice.
        """
        self._try(lambda: self._start(folder, results))
        for index in range(len(results["ledger"]["tasks"])):
            self.row(index, as_of(results, index))

    def _start(self, folder: Path, results: Mapping[str, Any]) -> None:
        import wandb
        from wandb.errors import CommError

        mode = self._mode(str(wandb.setup().settings.base_url))
        try:
            self._open(wandb, folder, results, mode)
        except CommError as error:
            LOG.warning(
                "W&B does not answer (%s); its files stay in the run folder: wandb sync %s",
                first_line(error),
                folder / "wandb" / "offline-run-*",
            )
            self._open(wandb, folder, results, "offline")

    def _open(self, wandb: Any, folder: Path, results: Mapping[str, Any], mode: str) -> None:
        """Open the run in a mode of W&B."""
        learner, source = results["learner"], results["source"]
        chosen = results["config"].get("experiment")
        presets = [] if chosen is None else [chosen]
        run = wandb.init(
            project=self.project,
            entity=self.entity,
            dir=folder,
            name=f"{learner}-s{results['seed']}",
            group=group_name(results),
            job_type="stream",
            tags=[learner, results["stream"], results["backbone"], f"data:{source}", *presets],
            config=dict(results["config"]) | {"data_hash": results["data"]["hash"]},
            mode=mode,
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", init_timeout=INIT_TIMEOUT_S),
        )
        for metric in ("score/*", "summary/*"):
            run.define_metric(metric, step_metric="task_index")
        self._run = run

    def row(self, index: int, results: Mapping[str, Any]) -> None:
        """Log scores, averages, forgetting and stored parameters against the task index."""
        names, scores = results["order"], results["matrix"][index]
        values: dict[str, Any] = {"task_index": index + 1}
        values |= {f"score/{n}": s for n, s in zip(names, scores, strict=True) if s is not None}
        summary = dict(results["metrics"])
        summary["stored_parameters"] = results["ledger"]["tasks"][index]["stored_parameters"]
        summary["total_multiple"] = results["ledger"]["total_multiple"]
        values |= {f"summary/{n}": v for n, v in summary.items() if v is not None}
        self._do(lambda run: run.log(values))

    def finish(self, results: Mapping[str, Any], figures: list[Path]) -> None:
        """Log the matrix as a table, the figures as images, and the final summary."""
        self._do(lambda run: self._finish(run, results, figures))

    def _finish(self, run: Any, results: Mapping[str, Any], figures: list[Path]) -> None:
        import wandb

        names, source = results["order"], results["source"]
        cells: list[Any] = [
            [names[after], names[on], score, source]
            for after, row in enumerate(results["matrix"])
            for on, score in enumerate(row)
            if score is not None
        ]
        table = wandb.Table(columns=["after", "on", "score", "data"], data=cells)
        images = {f"figures/{path.stem}": wandb.Image(str(path)) for path in figures}
        numbers = list(range(1, len(names) + 1))
        lines = wandb.plot.line_series(
            xs=[numbers[first:] for first in range(len(names))],
            ys=[
                [row[on] for row in results["matrix"][on:] if row[on] is not None]
                for on in range(len(names))
            ],
            keys=names,
            title=f"score of each task ({source} data)",
            xname="tasks learned",
        )
        run.log({"matrix": table, "score of each task": lines, **images})
        final = {k: v for k, v in results["metrics"].items() if v is not None}
        run.summary.update({**final, "data": source, "memory": dict(results["memory"])})

    def _mode(self, server: str) -> str:
        """Return W&B's mode: what WANDB_MODE says, else online only where a login exists."""
        if "WANDB_MODE" in os.environ:
            return os.environ["WANDB_MODE"]
        if self.mode != "auto":
            return self.mode
        return "online" if login_exists(server) else "offline"

    def _do(self, action: Callable[[Any], None]) -> None:
        """Act on the run if it is open."""
        run = self._run
        if run is not None:
            self._try(lambda: action(run))

    def _try(self, action: Callable[[], None]) -> None:
        """Act; where W&B fails, say so once and go on without it."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a view must never fail the run
            self._run = None
            LOG.warning("W&B is switched off for this run: %s", first_line(error))


def as_of(results: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the record as it was after task ``index`` (from 0), as far as rows show it."""
    ledger = results["ledger"]
    rows = ledger["tasks"][: index + 1]
    matrix = np.array(results["matrix"], dtype=np.float64)
    matrix[index + 1 :] = np.nan
    total = rows[-1]["stored_parameters"] / ledger["base_parameters"]
    return {
        **results,
        "metrics": summarize(matrix, results["baseline"]),
        "ledger": {**ledger, "tasks": rows, "total_multiple": total},
    }


def group_name(results: Mapping[str, Any]) -> str:
    """Return the group of a run: runs whose scores differ by nothing but their seed share it.

    So W&B's group page shows mean and spread over seeds. The last letters are a digest of all
    other settings that may change a score.
    """
    apart = (*SCORE_NEUTRAL, "seed", "count_flops")
    settings = {key: value for key, value in results["config"].items() if key not in apart}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    names = (results[key] for key in ("stream", "learner", "backbone", "source"))
    return "/".join((*names, digest))


def login_exists(server: str) -> bool:
    """Whether a key for W&B's server is in the environment or in the netrc file; never asks."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(server).hostname
    path = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    try:
        return host is not None and netrc.netrc(path).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


TRACKERS: Mapping[str, type] = {"wandb": WandbTracking, "none": NoTracking}
