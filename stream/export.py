"""``python -m stream.export``: the older spelling of ``task-stream export``."""

from stream.cli.main import command

if __name__ == "__main__":
    command("export")
