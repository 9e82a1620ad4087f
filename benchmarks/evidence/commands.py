"""Every run with the command that makes it again, and what computed them, in Markdown."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.evidence.again_tables import UNNAMED
from benchmarks.evidence.records import AtOnce, Records
from benchmarks.markdown import table
from stream.formatting import DASH, TIMES, count, percent


def runs(records: Records) -> str:
    """Return a line a run: its score, its memory, its seconds, and its command."""

    def lines() -> Iterator[Sequence[str]]:
        for name, run in records.kept.items():
            score = percent(run.metrics["average_score"])
            memory = f"{run.memory.tasks_identical} of {run.memory.tasks_checked}"
            seconds = f"{run.timing.train_s + run.timing.select_s:,.0f}"
            command = DASH if run.overrides is None else f"`{command_of(run.overrides)}`"
            yield name, score, memory, seconds, command

    return table("run,score at the end,bit-identical,learning (s),command", lines())


def machines(records: Records) -> str:
    """Return on what the runs were made, and how many at once."""
    found = Counter(
        (run.computed_on, records.at_once(name)) for name, run in sorted(records.runs.items())
    )
    told = (f"{count(number, 'run')} on {_place(*of)}" for of, number in found.most_common())
    return f"All groups together: {'; '.join(told)}." if found else "Not run yet."


def _place(name: str, at_once: AtOnce | None) -> str:
    """Return a device and how many runs shared it."""
    where = {"cpu": "a CPU", "cuda": UNNAMED}.get(name, name)
    if at_once is None:
        return where
    many = f"{at_once.gpus} {TIMES} " if name != "cpu" and at_once.gpus > 1 else ""
    return f"{many}{where}, at most {at_once.runs} of a command at once"


def command_of(overrides: Sequence[str]) -> str:
    """Return the command of a run, its data in ``DIR``.

    Args:
        overrides: what the record says that was given.
    """
    given = [text for text in overrides if not text.startswith("data.root=")]
    return shlex.join(["task-stream", "run", *given, "data.root=DIR"])
