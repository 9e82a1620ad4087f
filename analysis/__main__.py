"""``python -m analysis``: the older spelling of ``task-stream compare|figures|report|...``."""

import sys

from stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
