"""``python -m stream``: the same as ``task-stream``, also where no command is installed."""

from stream.cli.main import command

if __name__ == "__main__":
    command()
