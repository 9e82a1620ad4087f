"""``python -m stream.predict``: the older spelling of ``task-stream predict``."""

import sys

from stream.cli.terminal import outlive_readers
from stream.run.predict import main

if __name__ == "__main__":
    outlive_readers()
    sys.exit(main())
