"""Every run with the command that makes it again, in Markdown."""

import shlex
from collections.abc import Iterator, Sequence

from benchmarks.evidence.records import Records
from benchmarks.markdown import table
from stream.formatting import DASH, percent


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


def command_of(overrides: Sequence[str]) -> str:
    """Return the command of a run, its data in ``DIR``.

    Args:
        overrides: what the record says that was given.
    """
    given = [text for text in overrides if not text.startswith("data.root=")]
    return shlex.join(["task-stream", "run", *given, "data.root=DIR"])
