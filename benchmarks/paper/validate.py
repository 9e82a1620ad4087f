"""Validation scores of every task of a finished run, as JSON: what chooses among adapter sizes.

Run: python -m benchmarks.paper.validate RUN FILE. Opens the run from its checkpoint and scores
each task on its validation rows; nothing is learned.
"""

import json
import sys
from pathlib import Path

from stream.record.run_record import RunRecord
from stream.run.load import open_run


def main(folder: Path, file: Path) -> None:
    """Write {task: score}."""
    run = open_run(folder, RunRecord.read(folder).order)
    scores = {task.name: run.measure(task, "validation").score for task in run.tasks}
    file.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
