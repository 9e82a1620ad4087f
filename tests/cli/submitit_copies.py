"""A program whose processes of submitit are copies of it from before it began: no imports.

Started as ``tests.cli.submitit_copies MODULE ARGUMENTS...``; so are the controller of a job and the
job itself. Each writes its process id into ``copies/MODULE``, below the folder where it runs.
"""

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from submitit.local import local

from tests.run import program

HERE = "tests.cli.submitit_copies"
COPIES = Path("copies")


class Copies:
    """What takes the place of the module `subprocess` in submitit."""

    @staticmethod
    def Popen(command: list[str], *, env: dict[str, str], **given: Any) -> program.Started:  # noqa: N802
        """Start ``python ... -m MODULE ARGUMENTS...`` as a copy."""
        module, *arguments = command[command.index("-m") + 1 :]
        files = {"out": given.get("stdout"), "err": given.get("stderr")}
        options = {key: file.name for key, file in files.items() if file is not None}
        return program.Started(Path.cwd(), HERE, module, *arguments, environment=env, **options)


def main() -> None:
    module, *arguments = sys.argv[1:]
    COPIES.mkdir(exist_ok=True)
    tempfile.tempdir = str(COPIES.resolve())
    (COPIES / module).write_text(str(os.getpid()))
    program.SERVER = program.Server()
    local.subprocess = Copies  # type: ignore[assignment]
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
