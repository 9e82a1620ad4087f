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
from stream.report import wandb_variables, wandb_view
from stream.report.wandb_variables import variable

LOG = logging.getLogger(__name__)
PROJECT = "task-stream"
MODES = ("auto", "online", "offline", "disabled")
QUIETLY: Mapping[str, Any] = {"silent": True, "console": "off", "init_timeout": 20}
"""Settings of W&B that hold unless a variable says otherwise; the last one is in seconds."""
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
    WANDB_NAME, WANDB_RUN_GROUP, WANDB_JOB_TYPE, WANDB_NOTES), else chosen here. WANDB_DIR,
    WANDB_RUN_ID, WANDB_RESUME, WANDB_SILENT, WANDB_CONSOLE and others mean what W&B says.

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
        notes: a text about the run; else what its charts show.
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
        """Raise UserError if a setting or a variable says what W&B does not take."""
        self._run: Any = None
        wandb_variables.check(_refused, self)
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

        if variable("DIR"):  # W&B warns of one that is not there
            Path(variable("DIR")).mkdir(parents=True, exist_ok=True)
        mode = self._mode(str(wandb.setup().settings.base_url))
        try:
            self._open(wandb, folder, record, mode)
        except (CommError, UsageError) as error:
            key = isinstance(error, AuthenticationError | UsageError)
            what = "takes no such API key or setting" if key else "does not answer"
            files = variable("DIR") or folder
            how = f"its files stay here: wandb sync {Path(files, 'wandb', 'offline-run-*')}"
            LOG.warning("W&B %s (%s); %s", what, one_line(error), how)
            wandb.teardown()  # else its service holds the id of the run that did not open
            self._open(wandb, folder, record, "offline")

    def _open(self, wandb: Any, folder: Path, record: RunRecord, mode: str) -> None:
        """Open the run in a mode of W&B."""
        extra = [tag.strip() for tag in variable("TAGS").split(",") if tag.strip()]
        tags = [*wandb_view.tag_names(record), *extra, *self.tags]
        goes_on = "allow" if (folder / RUN_ID).exists() else None
        own = {key: value for key, value in QUIETLY.items() if not variable(key.upper())}
        run = wandb.init(
            id=None if mode == "disabled" else _run_id(folder),
            resume=(variable("RESUME") or goes_on) if mode == "online" else None,
            project=self.project or variable("PROJECT") or PROJECT,
            entity=self.entity,
            dir=variable("DIR") or folder,
            name=self.run_name or variable("NAME") or wandb_view.run_name(record),
            group=self.group or variable("RUN_GROUP") or wandb_view.group_name(record),
            job_type=self.job_type or variable("JOB_TYPE") or "stream",
            tags=list(dict.fromkeys(tags)),
            notes=self.notes or variable("NOTES") or wandb_view.NOTES,
            config=wandb_view.config_values(record),
            mode=mode,
            reinit="create_new",
            settings=wandb.Settings(**own),
        )
        for metric, axis in wandb_view.AXES.items():
            run.define_metric(metric, step_metric=axis)
        for axis in dict.fromkeys(wandb_view.AXES.values()):
            run.define_metric(axis, hidden=True)  # it gets no chart of its own
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
        return wandb_variables.mode() or ("online" if login_exists(server) else "offline")

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


def _refused(environment: Mapping[str, str]) -> None:
    """Raise what W&B raises for variables that it does not take; a broken W&B raises nothing."""
    try:
        import wandb

        settings = wandb.Settings()
        update = settings.update_from_env_vars
    except Exception:  # noqa: BLE001 - `start` says what is wrong with it
        return
    update(dict(environment))


def _run_id(folder: Path) -> str:
    """Return the id of a folder's W&B run: what WANDB_RUN_ID says, else the one it began with."""
    path = folder / RUN_ID
    known = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    chosen = variable("RUN_ID") or known or secrets.token_hex(8)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{chosen}\n", encoding="utf-8")
    return chosen


def login_exists(server: str) -> bool:
    """Whether a key for W&B's server is in the environment or in the netrc file; never asks."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(server).hostname
    path = Path(os.path.expanduser(os.environ.get("NETRC", "~/.netrc")))
    try:
        return host is not None and netrc.netrc(path).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


TRACKERS: Mapping[str, type] = {"wandb": WandbTracking, "none": NoTracking}
