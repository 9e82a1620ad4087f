"""``python -m stream.tasks``: the older spelling of ``task-stream tasks``."""

from stream.cli.main import command

if __name__ == "__main__":
    command("tasks")
