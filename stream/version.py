"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version; ``0+clone`` in a clone that is not installed."""
    try:
        return version("task-stream-simulator")
    except PackageNotFoundError:
        return "0+clone"
