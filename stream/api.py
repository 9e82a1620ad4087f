"""The Python API: run a stream from a program or a notebook, and read what it showed.

T tasks. Settings are those of the command line, and so are their defaults.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stream.config.compose import override
from stream.config.given import refuse_twice
from stream.config.typed import in_grammar, parse
from stream.errors import require
from stream.files.run_folder import refuse_used_folder, run_folder_of
from stream.formatting import stream_title
from stream.record.run_record import RunRecord
from stream.report.many import is_many
from stream.report.status import console_for
from stream.run.lock import exclusive_writer
from stream.run.new_folder import gone_unless_begun, lacking
from stream.run.settings import compose_settings

if TYPE_CHECKING:
    import pandas as pd

    from stream.run.predict import Prediction, Service, Text

Setting = str | int | float | bool | Path | Sequence[str] | None


class Results:
    """What a run showed: its record, as tables too, and its learned tasks, ready for texts.

    Attributes:
        folder: the run folder, from which everything is read.
        record: ``results.json``, typed.
    """

    def __init__(self, folder: str | Path):
        """Read the record in a run folder, which its ``results.json`` may name, too.

        Raises:
            UserError: there is none that is understood here.
        """
        self.folder = run_folder_of(Path(folder))
        self.record = RunRecord.read(self.folder)

    def __repr__(self) -> str:
        record, average = self.record, self.record.metrics.get("average_score")
        shown = "none yet" if average is None else f"{average:.3f}"
        tasks = ", ".join(record.order)
        if is_many(len(record.order)):
            tasks = f"{len(record.order):,} tasks ({stream_title(record.stream)})"
        return (
            f"<Results of {record.learner} on {tasks}: average score {shown}, "
            f"{record.status}, in {self.folder}>"
        )

    @property
    def scores(self) -> "pd.DataFrame":
        """The scores [T, T]: rows after learning a task, columns on a task; NaN where unknown."""
        import pandas as pd

        order = self.record.order
        return pd.DataFrame(
            np.array(self.record.matrix, dtype=np.float64),
            index=pd.Index(order, name="after learning"),
            columns=pd.Index(order, name="on task"),
        )

    @property
    def metrics(self) -> "pd.Series":
        """Every metric of the run by its name; NaN where it is undefined."""
        import pandas as pd

        return pd.Series(self.record.metrics, name="metrics", dtype=np.float64)

    @property
    def cells(self) -> "pd.DataFrame":
        """The evidence of each score, one row per cell that was evaluated."""
        import pandas as pd

        order, columns = self.record.order, ("score", "digest", "state", "seconds")
        rows = [
            (order[i], order[j], *(getattr(cell, name) for name in columns))
            for i, row in enumerate(self.record.cells)
            for j, cell in enumerate(row)
            if cell is not None
        ]
        return pd.DataFrame(rows, columns=["after", "on", *columns])

    def predict(self, task: str, texts: "Sequence[Text]") -> "list[Prediction]":
        """Return the learner's answer for each text (for a pair of texts, a tuple of two).

        ``task="auto"`` leaves the task of each text to the router of a run with
        ``scenario=inferred``; each answer says which it is.

        Raises:
            UserError: a task that was not learned, texts that are not what it takes, or a run that
                kept no checkpoint.
        """
        return self._service.predict(task, texts)

    @cached_property
    def _service(self) -> "Service":
        """The learned tasks, loaded once."""
        from stream.run.predict import Service  # with torch, which reading a record does not need

        return Service(self.folder)

    def verify(self) -> "pd.DataFrame":
        """Check the run's files again: digests, scores, counts, metrics; one row per check.

        Raises:
            UserError: data that cannot be read.
        """
        import pandas as pd

        from stream.run.verify import verify

        checks = [(c.what, c.expected, c.found, c.ok) for c in verify(self.folder)]
        return pd.DataFrame(checks, columns=["check", "recorded", "found", "ok"])


def load(folder: str | Path) -> Results:
    """Open the folder of a run.

    Raises:
        UserError: there is no run that is understood here.
    """
    return Results(folder)


def run_stream(
    *,
    folder: str | Path | None = None,
    overrides: Sequence[str] = (),
    quiet: bool = False,
    **settings: Setting,
) -> Results:
    """Run one learner over one stream of tasks.

    >>> run_stream(learner="adapter", task=["sst2", "rte"], seed=1)            # doctest: +SKIP

    Args:
        folder: the run folder, new or empty; None takes a new one below ``runs/``.
        overrides: further settings as on the command line, such as ``"learner.size=8"``.
        quiet: show nothing.
        settings: the choice of each group (learner, task, stream, data, backbone, tracking,
            experiment), and any setting that is not within one, such as ``seed``.

    Raises:
        UserError: an unknown name, option or value, with the valid choices.
        TrainingDivergedError: a loss that is not finite; the rows so far are in the folder.
        Interrupted: a signal asked to stop; ``task-stream run resume=FOLDER`` goes on.
    """
    require(
        not isinstance(overrides, str), f"overrides must be a list of settings: [{overrides!r}]"
    )
    given = [override(name, value) for name, value in settings.items()]
    chosen = [*given, *overrides]
    refuse_twice(parse(in_grammar(text, multirun=False) for text in chosen))
    moved = folder is not None and any(text.startswith("hydra.run.dir=") for text in chosen)
    require(not moved, "folder and hydra.run.dir name the run folder twice; give one of them")
    config, new = compose_settings(chosen)
    for name in ("resume", "sweep"):
        unset = getattr(config, name) is None
        require(unset, f"{name} is for the command line: task-stream run")
    folder = new if folder is None else Path(folder)
    refuse_used_folder(folder)
    from stream.run.session import run_in  # with torch, after mistakes

    made = lacking(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive_writer(folder), gone_unless_begun(made):
        run_in(folder, config, console_for(quiet=quiet), overrides=chosen)
    return Results(folder)
