"""``python -m stream.predict``: the older spelling of ``task-stream predict``."""

import sys

from stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["predict", *sys.argv[1:]]))
