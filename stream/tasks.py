"""``python -m stream.tasks``: the older spelling of ``task-stream tasks``."""

import sys

from stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["tasks", *sys.argv[1:]]))
