"""What people call the method of a run: its learner, or the preset of it that was chosen."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.record.run_record import RunRecord

GIVEN = re.compile(r"[+~]*learner(\.[\w.]+)?=(.*)")  # of the command line


def chosen_learner(record: "RunRecord") -> str:
    """Return the name that was given as ``learner=NAME``, which may be a preset's.

    The learner's own name where none was given, and in records from before it was kept.
    """
    return _chosen(record.learner, _given(record.overrides or ()))


def method_name(record: "RunRecord") -> str:
    """Return the chosen learner with the settings of it that were given: ``adapter (size=8)``."""
    return name_given(record.learner, record.overrides or ())


def name_given(learner: str, overrides: Sequence[str]) -> str:
    """Return the name of a method of which there is no record yet; as `method_name`.

    Args:
        learner: the learner's own name.
        overrides: what the command line gave.
    """
    given = _given(overrides)
    settings = {setting.removeprefix("."): value for setting, value in given if setting}
    told = ", ".join(f"{setting}={value}" for setting, value in settings.items())
    chosen = _chosen(learner, given)
    return f"{chosen} ({told})" if told else chosen


def _chosen(learner: str, given: Sequence[tuple[str, str]]) -> str:
    names = [value for setting, value in given if not setting]
    return names[-1] if names and re.fullmatch(r"\w+", names[-1]) else learner


def _given(overrides: Sequence[str]) -> list[tuple[str, str]]:
    """Return what the command line gave of the learner: settings (none of its name), values."""
    found = (GIVEN.fullmatch(text) for text in overrides)
    return [(match[1] or "", match[2].strip("'\"")) for match in found if match]
