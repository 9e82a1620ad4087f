"""What ``resume=`` makes of a command line: the run folder, and what the run has chosen already."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stream.cli.command_line import CommandLine
from stream.config.compose import override
from stream.errors import require
from stream.files.run_folder import run_folder_of
from stream.record.run_record import RunRecord
from stream.run.settings import compose_settings

ROOT = Path("runs")
"""Where ``resume=auto`` looks."""
MISSING = object()
OF_THE_RUN = ("learner", "data", "backbone")
"""The groups whose choice decides which settings there are, and which a run keeps."""


def with_run_folder(line: CommandLine) -> CommandLine:
    """Return the command line; after ``resume=FOLDER`` that folder is the run folder.

    ``resume=auto`` looks for an unfinished run of the same configuration, and starts a new one
    where there is none.

    Raises:
        UserError: there is no run in the folder, or a setting would change the run.
    """
    if line.multirun or not line.runs:
        return line
    asked = line.value("resume")
    if asked is None:
        return line
    if asked == "auto":
        from stream.run.resume import unfinished_run  # with torch

        config, _ = compose_settings(line.settings())
        folder = unfinished_run(ROOT, config)
        if folder is None:
            print(f"resume=auto: {ROOT}/ has no unfinished run of these settings; a new one starts")
            return line
        print(f"resume=auto: going on with {folder}")
    else:
        folder = run_folder_of(Path(asked))
        line = _without_known(line, RunRecord.read(folder))
    given = line.value("hydra.run.dir")
    require(
        given is None or Path(given) == folder,
        f"hydra.run.dir={given} has no effect: resume={asked} goes on in {folder}",
    )
    return line if given else line.extended(override("hydra.run.dir", folder))


def _without_known(line: CommandLine, record: RunRecord) -> CommandLine:
    """Return the command line without what it says about the choices that the run has made.

    Without ``data=files``, Hydra knows no ``data.root``; the run that goes on has one.

    Raises:
        UserError: a setting with another value than the run has.
    """
    known = []
    given = {setting.key_or_group: setting for setting in line.overrides}
    for key, setting in given.items():
        group = key.partition(".")[0]
        if group in OF_THE_RUN and key != group and group not in given:
            run, value = line.value("resume"), _recorded(record.config, key)
            require(value is not MISSING, f"{run} has no {key}; leave {setting.input_line} out")
            same = value == setting.value()
            now = f"{key} was {value}, now {setting.value()}"
            require(same, f"cannot go on with {run}: {now}; leave it out")
            known.append(key)
    return line.without(known)


def _recorded(values: Any, key: str) -> Any:
    """Return the value of a setting in the record of a run; `MISSING` if there is none."""
    for name in key.split("."):
        values = values.get(name, MISSING) if isinstance(values, Mapping) else MISSING
    return values
