"""``task-stream version``: what a report of a fault should say about the machine."""

import argparse
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stream.version import installed_version

PACKAGES = ("torch", "transformers", "hydra-core", "wandb", "numpy", "scikit-learn", "pyarrow")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "HF_HOME", "WANDB_MODE")


def add_commands(commands: Any) -> None:
    """Add ``version`` to the command line."""
    command = commands.add_parser(
        "version", description="The versions and the machine, for a report of a fault."
    )
    command.set_defaults(execute=_version)


def _version(arguments: argparse.Namespace) -> None:
    """Print the versions, the machine, and the variables that change how it computes."""
    del arguments
    print(f"task-stream {installed_version()}, in {Path(__file__).parent.parent}")
    print(f"Python {platform.python_version()}, {sys.executable}")
    print(f"{platform.platform()}, {os.cpu_count()} cores")
    print(", ".join(f"{name} {_installed(name)}" for name in PACKAGES))
    given = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    print(" ".join(given) or f"none of {', '.join(VARIABLES)} is set")


def _installed(name: str) -> str:
    """Return the version of a package, without importing it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "is missing"
