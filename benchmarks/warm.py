"""The program in copies of one process: it imports everything once and computes nothing itself.

Importing torch, transformers and matplotlib takes longer than a small run. A copy (fork) starts at
once, and no run sees anything of another.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # bits depend on it, so all runs need the same
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import matplotlib.figure
import scipy.stats
import sklearn.metrics
import transformers

import run_stream
from benchmarks.fork import forked
from stream.learners import LEARNERS
from stream.report import plots
from stream.run import load, resume, session, verify

# What the program imports when it first needs it; here once, instead of in every copy.
IMPORTED = (
    matplotlib.figure,
    scipy.stats,
    sklearn.metrics,
    transformers.BertModel,
    transformers.AutoModel,
    run_stream,
    plots,
    dict(LEARNERS),
    load,
    resume,
    session,
    verify,
)
__all__ = ["forked", "run_stream"]
