"""``task-stream export RUN --task sst2 --out FOLDER``: one learned task as files that stand alone.

Where learning changed the whole encoder, it is among them: docs/export.md has their format.
"""

import argparse
import shlex
from pathlib import Path
from typing import Any

from stream.run.export import export_task
from stream.run.exported import ENCODER, TENSORS, WEIGHTS


def add_commands(commands: Any) -> None:
    """Add ``export`` to the command line."""
    command = commands.add_parser("export", description=str(__doc__).replace("``", "`"))
    command.add_argument("run", type=Path, metavar="RUN", help="a run folder with its checkpoint")
    command.add_argument("--task", required=True, help="a task that the run has learned")
    command.add_argument("--out", type=Path, required=True, help="the new folder")
    command.add_argument(
        "--with-encoder",
        action="store_true",
        help="write the encoder with the task's weights too, as transformers loads it",
    )
    command.set_defaults(execute=_export)


def _export(given: argparse.Namespace) -> None:
    """Write the task's files, and say how to serve them."""
    facts = export_task(given.run, given.task, given.out, with_encoder=given.with_encoder)
    sizes = {
        path: path.stat().st_size
        for path in (given.out / TENSORS, given.out / ENCODER / WEIGHTS)
        if path.exists()
    }
    for path, size in sizes.items():
        print(f"written: {shlex.quote(str(path))}, {size:,} bytes")
    print("serve it with:")
    folder = shlex.quote(str(given.out))
    print(f"task-stream predict {folder} --task {facts['task']} < texts")
