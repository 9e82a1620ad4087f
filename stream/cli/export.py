"""``task-stream export RUN --task sst2 --out FOLDER``: one learned task as two files.

They stand alone: docs/export.md has their format.
"""

import argparse
from pathlib import Path
from typing import Any

from stream.run.export import TENSORS, export_task


def add_commands(commands: Any) -> None:
    """Add ``export`` to the command line."""
    command = commands.add_parser("export", description=__doc__)
    command.add_argument("run", type=Path, metavar="RUN", help="a run folder with its checkpoint")
    command.add_argument("--task", required=True, help="a task that the run has learned")
    command.add_argument("--out", type=Path, required=True, help="the new folder")
    command.set_defaults(execute=_export)


def _export(given: argparse.Namespace) -> None:
    """Write the task's files, and say how to serve them."""
    facts = export_task(given.run, given.task, given.out)
    size = (given.out / TENSORS).stat().st_size
    print(f"{given.out}: {len(facts['tensors'])} tensors, {size:,} bytes; serve it with:")
    print(f"task-stream predict {given.out} --task {facts['task']} < texts")
