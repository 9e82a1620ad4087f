"""What W&B's own variables of the environment (``WANDB_*``) say, and which values W&B refuses.

A setting of ``tracking`` goes before the variable, and the variable before our own default.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stream.errors import UserError, choose, first_line
from stream.files.writable import Place, check_writable

# What the variable may say: "run" and "dryrun" are old names of the first two.
MODES = {"online": "online", "run": "online", "offline": "offline", "dryrun": "offline"}
MODES |= {"disabled": "disabled", "shared": "shared"}
TRUE, FALSE = ("true", "1", "yes", "t", "y", "on"), ("false", "0", "no", "f", "n", "off", "")
OF_RUNS = "(a variable of the environment)"
SETTINGS = {
    "PROJECT": "project",
    "ENTITY": "entity",
    "NAME": "run_name",
    "RUN_GROUP": "group",
    "JOB_TYPE": "job_type",
    "NOTES": "notes",
    "TAGS": "tags",
}
"""The setting of ``tracking`` that says the same as a variable."""


def variable(name: str) -> str:
    """Return one of W&B's variables; empty if it is not set."""
    return os.environ.get(f"WANDB_{name}", "")


def is_disabled() -> bool:
    """Whether WANDB_DISABLED says so."""
    return variable("DISABLED").lower() in TRUE


def mode() -> str | None:
    """Return the mode that the variables ask for; None if they do not."""
    if is_disabled():
        return "disabled"
    return MODES[variable("MODE")] if variable("MODE") else None


def check(refused: Callable[[Mapping[str, str]], object], tracking: Any) -> None:
    """Check every variable and every setting of the tracker.

    Args:
        refused: raises what W&B raises for variables of the environment that it does not take.
        tracking: the tracker's settings.

    Raises:
        UserError: names the variable or setting, with the reason.
    """
    if "WANDB_MODE" in os.environ:
        choose(f"WANDB_MODE {OF_RUNS}", variable("MODE"), MODES)
    choose(f"WANDB_DISABLED {OF_RUNS}", variable("DISABLED").lower(), (*TRUE, *FALSE[:-1], ""))
    if variable("DIR"):
        check_writable(Path(variable("DIR")), Place("WANDB_DIR", "WANDB_DIR"))
    given = {name: (f"{name}={value}", value) for name, value in os.environ.items() if value}
    for name, setting in SETTINGS.items():
        value = getattr(tracking, setting)
        text = ",".join(value) if isinstance(value, list) else value
        if text:
            given[f"WANDB_{name}"] = (f"tracking.{setting}={text}", text)
    for name, (said, value) in given.items():
        if name.startswith("WANDB_"):
            reason = _reason(refused, name, value)
            if reason is not None:
                raise UserError(f"{said}: W&B does not take it: {reason}")


def _reason(refused: Callable[[Mapping[str, str]], object], name: str, value: str) -> str | None:
    """Return why W&B does not take the value of a variable; None if it does."""
    try:
        refused({name: value})
    except Exception as error:  # noqa: BLE001 - of several kinds, and none of them ours
        found = getattr(error, "errors", list)()  # pydantic's, of which the first says it all
        return str(found[0]["msg"]).removeprefix("Value error, ") if found else first_line(error)
    return None
