"""The program in copies of one process: it imports everything once and computes nothing itself.

Importing torch, transformers and matplotlib takes longer than a small run. A copy (fork) starts at
once, and no run sees anything of another.
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # bits depend on it, so all runs need the same
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import matplotlib.figure
import scipy.stats
import sklearn.metrics
import transformers

import run_stream
from stream.report import plots

# What the program imports when it first needs it; here once, instead of in every copy.
IMPORTED = (
    matplotlib.figure,
    scipy.stats,
    sklearn.metrics,
    transformers.BertModel,
    transformers.AutoModel,
    run_stream,
    plots,
)
CRASHED = 70


def forked(
    program: Callable[[], object],
    folder: Path,
    out: Path,
    err: Path,
    given: Path = Path(os.devnull),
) -> int:
    """Start a program in a copy of this process; return its process id.

    Args:
        program: what the copy calls; it may end with ``SystemExit``.
        folder: where it runs.
        out: the file behind which its output goes.
        err: the same for its error output.
        given: the file that is its standard input.
    """
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = CRASHED
    try:
        os.dup2(os.open(given, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, closefd=False)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
        os.chdir(folder)
        program()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED * (error.code is not None)
    except BaseException:  # noqa: BLE001 - told to the parent by the exit code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
