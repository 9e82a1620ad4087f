"""``python -m stream.tasks``: the older spelling of ``task-stream tasks``."""

import sys

from stream.cli.tasks import main
from stream.cli.terminal import outlive_readers

if __name__ == "__main__":
    outlive_readers()
    sys.exit(main(sys.argv[1:]))
