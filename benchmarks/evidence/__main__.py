"""The comparison of docs/protocol.md: searches, runs, tables.

Run, with the data of all tasks in DIR:
python -m benchmarks.evidence search --out results/evidence --workers 16 --per-gpu 8 data.root=DIR
python -m benchmarks.evidence run    --out results/evidence --workers 16 --per-gpu 8 data.root=DIR
What is kept in OUT is not done again, so a start that was stopped goes on. Then, from OUT alone:
python -m benchmarks.evidence tables --out results/evidence --figures docs/evidence FILE.md ...
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evidence.ablation_figures import draw_ablations
from benchmarks.evidence.again import note_replaced, run_again
from benchmarks.evidence.blocks import fill
from benchmarks.evidence.figures import draw
from benchmarks.evidence.records import Records
from benchmarks.evidence.runs import run_missing
from benchmarks.evidence.searches import search
from stream.config.workers import WorkersConfig
from stream.run.settings import register_groups


def main(arguments: Sequence[str] | None = None) -> int:
    """Do a step; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("search", "run", "again", "replaced", "tables"))
    parser.add_argument("--out", type=Path, required=True, help="where records are kept")
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="runs at once; a single one may have workers of its own, such as workers=6",
    )
    parser.add_argument("--per-gpu", type=int, help="of them on each GPU")
    parser.add_argument(
        "--only",
        type=re.compile,
        default=".",
        help="GROUP/METHOD, or GROUP/METHOD-sSEED",
    )
    parser.add_argument("--count", type=int, default=10, help="how many runs are made again")
    parser.add_argument("--figures", type=Path, help="the folder that tables draws into")
    parser.add_argument(
        "settings",
        nargs="*",
        help="as for run_stream.py, such as data.root=DIR; of tables: the Markdown files to fill; "
        "of replaced: OUT as it was once",
    )
    given = parser.parse_intermixed_args(arguments)
    out = given.out.resolve()
    if given.step == "tables":
        write(Records(out), [Path(file) for file in given.settings], given.figures)
        return 0
    if given.step == "replaced":
        if len(given.settings) != 1:
            parser.error("replaced: one folder is needed, OUT as it was once")
        print(f"{note_replaced(out, Path(given.settings[0]))} runs took the place of others")
        return 0
    if given.step == "search":
        per_gpu = [f"workers.per_gpu={given.per_gpu}"] if given.per_gpu else []
        more = [*given.settings, f"workers={given.workers}", *per_gpu, "workers.threads=1"]
        search(out, more, lambda name: bool(given.only.search(name)))
        return 0
    register_groups()
    workers = WorkersConfig(count=given.workers, per_gpu=given.per_gpu, threads=1)
    where = out, given.settings, workers, lambda job: bool(given.only.search(job.name))
    failed = run_missing(*where) if given.step == "run" else run_again(*where, given.count)
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


def write(records: Records, files: Sequence[Path], figures: Path | None) -> None:
    """Fill Markdown files and the list of runs, and draw.

    Args:
        records: all of them.
        files: what to fill.
        figures: where figures and the report go; None for neither.
    """
    for file in (*files, records.out / "README.md"):
        fill(file, records)
    if figures is not None:
        draw(records, figures)
        draw_ablations(records, figures)


if __name__ == "__main__":
    sys.exit(main())
