"""Run one learner over one stream of tasks: ``python run_stream.py learner=adapter``.

It is ``task-stream run`` for a clone that is not installed.
"""

import os
import sys
from pathlib import Path

from stream.cli.leaving import leave_after
from stream.run.preloaded import begin_early

if __name__ == "__main__":
    # Jobs of a sweep that run in other processes import the program from here.
    paths = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    begin_early(sys.argv[1:])
    from stream.cli.run import main  # while workers import

    leave_after(lambda: main(sys.argv[1:]))
