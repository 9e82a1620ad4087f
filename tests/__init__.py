"""The tests. They start many processes, which would each compile the same modules anew."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
