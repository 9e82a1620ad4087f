"""``python -m stream.predict``: the older spelling of ``task-stream predict``."""

from stream.cli.main import command

if __name__ == "__main__":
    command("predict")
