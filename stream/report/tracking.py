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

import msgspec
import numpy as np

from stream.config.run import SCORE_NEUTRAL
from stream.errors import choose, first_line
from stream.metrics import summarize
from stream.record.run_record import RunRecord

LOG = logging.getLogger(__name__)
MODES = ("auto", "online", "offline")
INIT_TIMEOUT_S = 20


class Tracker(Protocol):
    """What the runner asks of a tracker; used in a ``with`` block, which closes it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def start(self, folder: Path, record: RunRecord) -> None:
        """Open the run; ``record`` is that before the first task."""
        ...

    def row(self, index: int, record: RunRecord) -> None:
        """Show the row after task ``index`` (from 0)."""
        ...

    def finish(self, record: RunRecord, figures: list[Path]) -> None:
        """Show the whole record and the figures."""
        ...


@dataclass
class NoTracking:
    """No tracker."""

    name: str = "none"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def start(self, folder: Path, record: RunRecord) -> None:
        """Do nothing."""

    def row(self, index: int, record: RunRecord) -> None:
        """Do nothing."""

    def finish(self, record: RunRecord, figures: list[Path]) -> None:
        """Do nothing."""


@dataclass
class WandbTracking:
    """Weights & Biases: offline unless a login exists; never asks, hangs or fails the run."""

    name: str = "wandb"
    project: str = "task-stream"
    entity: str | None = None
    mode: str = "auto"

    def __post_init__(self) -> None:
        """Check the mode. Raises UserError for an unknown one."""
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

    def start(self, folder: Path, record: RunRecord) -> None:
        """Open one W&B run whose files lie in the run folder; offline if no server answers.

        After an interruption it is a new W&B run, and gets the rows done before: so the last run
        of a folder holds everything, and no step comes twice.
        """
        self._try(lambda: self._start(folder, record))
        for index in range(len(record.ledger.tasks)):
            self.row(index, as_of(record, index))

    def _start(self, folder: Path, record: RunRecord) -> None:
        import wandb
        from wandb.errors import CommError

        mode = self._mode(str(wandb.setup().settings.base_url))
        try:
            self._open(wandb, folder, record, mode)
        except CommError as error:
            LOG.warning(
                "W&B does not answer (%s); its files stay in the run folder: wandb sync %s",
                first_line(error),
                folder / "wandb" / "offline-run-*",
            )
            self._open(wandb, folder, record, "offline")

    def _open(self, wandb: Any, folder: Path, record: RunRecord, mode: str) -> None:
        """Open the run in a mode of W&B."""
        chosen = record.config.get("experiment")
        presets = [] if chosen is None else [chosen]
        tags = [record.learner, record.stream, record.backbone, f"data:{record.source}", *presets]
        run = wandb.init(
            project=self.project,
            entity=self.entity,
            dir=folder,
            name=f"{record.learner}-s{record.seed}",
            group=group_name(record),
            job_type="stream",
            tags=tags,
            config=record.config | {"data_hash": record.data.hash},
            mode=mode,
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", init_timeout=INIT_TIMEOUT_S),
        )
        for metric in ("score/*", "summary/*"):
            run.define_metric(metric, step_metric="task_index")
        self._run = run

    def row(self, index: int, record: RunRecord) -> None:
        """Log scores, averages, forgetting and stored parameters against the task index."""
        names, scores, ledger = record.order, record.matrix[index], record.ledger
        values: dict[str, Any] = {"task_index": index + 1}
        values |= {f"score/{n}": s for n, s in zip(names, scores, strict=True) if s is not None}
        summary = dict(record.metrics)
        summary["stored_parameters"] = ledger.tasks[index].stored_parameters
        summary["total_multiple"] = ledger.total_multiple
        values |= {f"summary/{n}": v for n, v in summary.items() if v is not None}
        self._do(lambda run: run.log(values))

    def finish(self, record: RunRecord, figures: list[Path]) -> None:
        """Log the matrix as a table, the figures as images, and the final summary."""
        self._do(lambda run: self._finish(run, record, figures))

    def _finish(self, run: Any, record: RunRecord, figures: list[Path]) -> None:
        import wandb

        names, source = record.order, record.source
        cells: list[Any] = [
            [names[after], names[on], score, source]
            for after, row in enumerate(record.matrix)
            for on, score in enumerate(row)
            if score is not None
        ]
        table = wandb.Table(columns=["after", "on", "score", "data"], data=cells)
        images = {f"figures/{path.stem}": wandb.Image(str(path)) for path in figures}
        numbers = list(range(1, len(names) + 1))
        lines = wandb.plot.line_series(
            xs=[numbers[first:] for first in range(len(names))],
            ys=[
                [row[on] for row in record.matrix[on:] if row[on] is not None]
                for on in range(len(names))
            ],
            keys=names,
            title=f"score of each task ({source} data)",
            xname="tasks learned",
        )
        run.log({"matrix": table, "score of each task": lines, **images})
        final = {k: v for k, v in record.metrics.items() if v is not None}
        memory = msgspec.structs.asdict(record.memory)
        run.summary.update({**final, "data": source, "memory": memory})

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


def as_of(record: RunRecord, index: int) -> RunRecord:
    """Return the record as it was after task ``index`` (from 0), as far as rows show it."""
    rows = record.ledger.tasks[: index + 1]
    matrix = np.array(record.matrix, dtype=np.float64)
    matrix[index + 1 :] = np.nan
    total = rows[-1].stored_parameters / record.ledger.base_parameters
    return msgspec.structs.replace(
        record,
        metrics=summarize(matrix, record.baseline),
        ledger=msgspec.structs.replace(record.ledger, tasks=rows, total_multiple=total),
    )


def group_name(record: RunRecord) -> str:
    """Return the group of a run: runs whose scores differ by nothing but their seed share it.

    So W&B's group page shows mean and spread over seeds. The last letters are a digest of all
    other settings that may change a score.
    """
    apart = (*SCORE_NEUTRAL, "seed", "count_flops")
    settings = {key: value for key, value in record.config.items() if key not in apart}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]
    return "/".join((record.stream, record.learner, record.backbone, record.source, digest))


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
