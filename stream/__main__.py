"""``python -m stream``: the same as ``task-stream``, also where no command is installed."""

import sys

from stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
