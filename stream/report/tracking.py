"""Trackers: views of a run elsewhere. The record of truth is results.json.

Weights & Biases may be missing, unreachable or broken: nothing of that fails or delays a run.
"""

import logging
import netrc
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from stream.errors import choose, one_line
from stream.record.run_record import RunRecord
from stream.report import wandb_view

LOG = logging.getLogger(__name__)
PROJECT = "task-stream"
MODES = ("auto", "online", "offline", "disabled")
# What W&B's own variable may say: "run" and "dryrun" are old names of the first two.
WANDB_MODES = {"online": "online", "run": "online", "offline": "offline", "dryrun": "offline"}
WANDB_MODES |= {"disabled": "disabled", "shared": "shared"}
INIT_TIMEOUT_S = 20
RUN_ID = Path("wandb", "run-id")  # in the run folder


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
    """Weights & Biases: offline unless a login exists; never asks, hangs or fails the run.

    What is null is taken from W&B's own variable of that name (WANDB_PROJECT, WANDB_ENTITY,
    WANDB_NAME, WANDB_RUN_GROUP, WANDB_JOB_TYPE, WANDB_NOTES), else chosen here.

    Attributes:
        name: the name of the choice.
        project: where runs are collected; ``task-stream`` if nothing says otherwise.
        entity: the user or team.
        mode: ``online``, ``offline``, ``disabled``, or ``auto``: what WANDB_MODE or WANDB_DISABLED
            says, else online only where a login exists.
        run_name: the run's name; else learner, seed and what the command line gave.
        group: runs that are shown together; else those that differ by nothing but their seed.
        job_type: else ``stream``.
        tags: besides the run's choices and those in WANDB_TAGS.
        notes: a text about the run.
    """

    name: str = "wandb"
    project: str | None = None
    entity: str | None = None
    mode: str = "auto"
    run_name: str | None = None
    group: str | None = None
    job_type: str | None = None
    tags: list[str] = field(default_factory=list)
    notes: str | None = None

    def __post_init__(self) -> None:
        """Check the mode. Raises UserError for an unknown one."""
        choose("tracking.mode", self.mode, MODES)

    def __enter__(self) -> Self:
        """Raise UserError if WANDB_MODE is set to what W&B does not know."""
        self._run: Any = None
        if "WANDB_MODE" in os.environ:
            choose("WANDB_MODE (a variable of the environment)", _variable("MODE"), WANDB_MODES)
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
        """Open the W&B run of a run folder; offline if no server takes it.

        A folder's run keeps its id. When it goes on after an interruption, rows that the server
        has are not sent again; an offline part holds them all, so that the last part is whole.
        """
        self._try(lambda: self._start(folder, record))
        for index in range(self._known_rows(), len(record.ledger.tasks)):
            self.row(index, record)

    def _start(self, folder: Path, record: RunRecord) -> None:
        import wandb
        from wandb.errors import AuthenticationError, CommError, UsageError

        mode = self._mode(str(wandb.setup().settings.base_url))
        try:
            self._open(wandb, folder, record, mode)
        except (CommError, UsageError) as error:
            key = isinstance(error, AuthenticationError | UsageError)
            what = "takes no such API key or setting" if key else "does not answer"
            files = _variable("DIR") or folder
            how = f"its files stay here: wandb sync {Path(files, 'wandb', 'offline-run-*')}"
            LOG.warning("W&B %s (%s); %s", what, one_line(error), how)
            wandb.teardown()  # else its service holds the id of the run that did not open
            self._open(wandb, folder, record, "offline")

    def _open(self, wandb: Any, folder: Path, record: RunRecord, mode: str) -> None:
        """Open the run in a mode of W&B."""
        extra = [tag.strip() for tag in _variable("TAGS").split(",") if tag.strip()]
        tags = [*wandb_view.tag_names(record), *extra, *self.tags]
        run = wandb.init(
            id=None if mode == "disabled" else _run_id(folder),
            resume="allow" if mode == "online" else None,
            project=self.project or _variable("PROJECT") or PROJECT,
            entity=self.entity,
            dir=_variable("DIR") or folder,
            name=self.run_name or _variable("NAME") or wandb_view.run_name(record),
            group=self.group or _variable("RUN_GROUP") or wandb_view.group_name(record),
            job_type=self.job_type or _variable("JOB_TYPE") or "stream",
            tags=list(dict.fromkeys(tags)),
            notes=self.notes,
            config=wandb_view.config_values(record),
            mode=mode,
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", init_timeout=INIT_TIMEOUT_S),
        )
        for metric, axis in wandb_view.AXES.items():
            run.define_metric(metric, step_metric=axis)
        self._run = run

    def _known_rows(self) -> int:
        """Return how many tasks the server has, of a run that goes on there."""
        run = self._run
        return int(run.summary.get("task_index", 0)) if run is not None and run.resumed else 0

    def row(self, index: int, record: RunRecord) -> None:
        """Log what is shown of task ``index`` and after it."""

        def log(run: Any) -> None:
            for point in wandb_view.points(record, index):
                run.log(point)

        self._do(log)

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
        rows: list[Any] = wandb_view.forgetting_rows(record)
        lost = wandb.Table(columns=list(wandb_view.FORGETTING_COLUMNS), data=rows)
        scores, changes = wandb_view.score_lines(record), wandb_view.change_lines(record)
        what = f"score minus score right after learning ({source} data)"
        charts = {
            "score of each task": _lines(names, scores, f"score of each task ({source} data)"),
            "forgetting curves": _lines(names, changes, what),
        }
        run.log({"matrix": table, "forgetting by task": lost, **charts, **images})
        run.summary.update(wandb_view.final_values(record))

    def _mode(self, server: str) -> str:
        """Return W&B's mode: the setting, else what W&B's variables say, else by login."""
        if self.mode != "auto":
            return self.mode
        if _variable("DISABLED").lower() in ("true", "1", "yes", "t", "y"):
            return "disabled"
        if _variable("MODE"):
            return WANDB_MODES[_variable("MODE")]
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
            LOG.warning("W&B is switched off for this run: %s", one_line(error))


def _lines(names: Sequence[str], columns: Sequence[Sequence[float]], title: str) -> Any:
    """Return a chart of a line a task, from when it was learned on."""
    import wandb

    xs = [list(range(on + 1, on + 1 + len(column))) for on, column in enumerate(columns)]
    return wandb.plot.line_series(xs=xs, ys=columns, keys=names, title=title, xname="tasks learned")


def _variable(name: str) -> str:
    """Return one of W&B's variables of the environment; empty if it is not set."""
    return os.environ.get(f"WANDB_{name}", "")


def _run_id(folder: Path) -> str:
    """Return the id of a folder's W&B run: what WANDB_RUN_ID says, else the one it began with."""
    path = folder / RUN_ID
    known = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    chosen = _variable("RUN_ID") or known or secrets.token_hex(8)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{chosen}\n", encoding="utf-8")
    return chosen


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
