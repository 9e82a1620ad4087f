"""``python -m analysis``: the older spelling of ``task-stream compare|figures|report|...``."""

from stream.cli.main import command, main

__all__ = ["main"]

if __name__ == "__main__":
    command()
