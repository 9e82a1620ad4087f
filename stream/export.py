"""``python -m stream.export``: the older spelling of ``task-stream export``."""

import sys

from stream.cli.terminal import outlive_readers
from stream.run.export import main

if __name__ == "__main__":
    outlive_readers()
    sys.exit(main())
