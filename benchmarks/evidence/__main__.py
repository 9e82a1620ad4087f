"""The comparison of docs/protocol.md: searches, runs, tables.

Run, with the data of all tasks in DIR:
python -m benchmarks.evidence search --out results/evidence --workers 16 --per-gpu 8 data.root=DIR
python -m benchmarks.evidence run    --out results/evidence --workers 16 --per-gpu 8 data.root=DIR
What is kept in OUT is not done again, so a start that was stopped goes on.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evidence.plan import METHODS
from benchmarks.evidence.runs import run_missing
from benchmarks.evidence.searches import search
from stream.config.workers import WorkersConfig
from stream.run.settings import register_groups


def main(arguments: Sequence[str] | None = None) -> int:
    """Do a step; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("search", "run"))
    parser.add_argument("--out", type=Path, required=True, help="where records are kept")
    parser.add_argument("--workers", type=int, default=1, help="runs at once")
    parser.add_argument("--per-gpu", type=int, help="of them on each GPU")
    parser.add_argument(
        "--only", type=re.compile, default=".", help="of METHOD, or of a run's GROUP/METHOD-sSEED"
    )
    parser.add_argument("settings", nargs="*", help="as for run_stream.py, such as data.root=DIR")
    given = parser.parse_intermixed_args(arguments)
    out = given.out.resolve()
    if given.step == "search":
        per_gpu = [f"workers.per_gpu={given.per_gpu}"] if given.per_gpu else []
        more = [*given.settings, f"workers={given.workers}", *per_gpu, "workers.threads=1"]
        search(out, more, {method.name for method in METHODS if given.only.search(method.name)})
        return 0
    register_groups()
    workers = WorkersConfig(count=given.workers, per_gpu=given.per_gpu, threads=1)
    failed = run_missing(
        out, given.settings, workers, lambda job: bool(given.only.search(job.name))
    )
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
