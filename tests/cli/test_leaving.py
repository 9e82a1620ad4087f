"""How the process of a command ends: at once, but with all that was to be done, and its code."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading, time
from stream.cli.leaving import leave_after

def told(text):
    sys.stdout.write(text + " ")  # not flushed

class TakenApart:
    def __del__(self):
        told("taken apart")

def late():
    time.sleep(0.1)
    told("thread")

def command():
    threading.Thread(target=late).start()
    told("command")
    {ends}

kept = TakenApart()
atexit.register(told, "atexit")
leave_after(command)
"""


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [
        ("return None", 0, "command thread atexit "),
        ("return 130", 130, "command thread atexit "),
        ("raise SystemExit(3)", 3, "command thread atexit "),
        ("raise SystemExit('a reason')", 1, "command thread atexit taken apart "),
        ("raise RuntimeError('a fault')", 1, "command thread atexit taken apart "),
    ],
)
def test_a_command_leaves_with_its_code_when_all_is_done(ends: str, code: int, told: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(ends=ends)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, told)


INTERRUPTED = """
import atexit, os, signal
from stream.cli.leaving import leave_after

atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
leave_after(lambda: print("all that was done"))
"""


def test_ctrl_c_while_a_command_leaves_is_no_traceback() -> None:
    program = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == ("all that was done\n", "")
