"""What people call the method of a run: its learner, or the preset of it that was chosen."""

import re

from stream.record.run_record import RunRecord

GIVEN = re.compile(r"[+~]*learner(\.[\w.]+)?=(.*)")  # of the command line


def chosen_learner(record: RunRecord) -> str:
    """Return the name that was given as ``learner=NAME``, which may be a preset's.

    The learner's own name where none was given, and in records from before it was kept.
    """
    names = [value for setting, value in _given(record) if not setting]
    return names[-1] if names and re.fullmatch(r"\w+", names[-1]) else record.learner


def method_name(record: RunRecord) -> str:
    """Return the chosen learner with the settings of it that were given: ``adapter (size=8)``."""
    settings = {setting.removeprefix("."): value for setting, value in _given(record) if setting}
    told = ", ".join(f"{setting}={value}" for setting, value in settings.items())
    return f"{chosen_learner(record)} ({told})" if told else chosen_learner(record)


def _given(record: RunRecord) -> list[tuple[str, str]]:
    """Return what the command line gave of the learner: settings (none of its name), values."""
    found = (GIVEN.fullmatch(text) for text in record.overrides or ())
    return [(match[1] or "", match[2].strip("'\"")) for match in found if match]
