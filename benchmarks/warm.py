"""The program in copies of one process: it imports everything once and computes nothing itself.

Importing torch, transformers and matplotlib takes longer than a small run. A copy (fork) starts at
once, and no run sees anything of another.
"""

import gc
import io
import os
import tempfile
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # bits depend on it, so all runs need the same
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import matplotlib.figure
import scipy.stats
import sklearn.metrics
import transformers

from benchmarks.fork import forked
from stream.cli.run import main as run_main
from stream.learners import LEARNERS
from stream.report import plots
from stream.run import load, resume, session, verify
from stream.run.settings import compose_settings, with_learner
from stream.run.setup import build_run

# What the program imports when it first needs it; here once, instead of in every copy.
IMPORTED = (
    matplotlib.figure,
    scipy.stats,
    sklearn.metrics,
    transformers.BertModel,
    transformers.AutoModel,
    run_main,
    plots,
    dict(LEARNERS),
    load,
    resume,
    session,
    verify,
)
TINY = ("experiment=smoke", "device=cpu", "tracking=none")
__all__ = ["forked", "run_main", "warm_up"]


@cache
def warm_up() -> None:
    """Set up a tiny run and draw an empty figure, for what is found out once a process.

    That is what Hydra's plugins, its grammar, the families and the tokenizers are. Nothing learns:
    a backward pass starts threads, which no copy has. Copies then leave all objects alone.
    """
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        build_run(with_learner(compose_settings(TINY)[0]), Path(folder))
    matplotlib.figure.Figure(figsize=(1, 1)).savefig(io.BytesIO(), format="svg")
    gc.collect()
    gc.freeze()
