"""``python -m stream.export``: the older spelling of ``task-stream export``."""

import sys

from stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
