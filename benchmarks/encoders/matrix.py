"""Which learner works on which encoder family: the matrix in docs/encoders.md.

Run: python -m benchmarks.encoders.matrix docs/encoders.md [--common]
Every learner that reads the encoder goes through the battery of `tests.contract.matrix` on a tiny
encoder of every family. What a learner refuses is in the table with its reason. What fails a check
or crashes is a defect: the table says so, and the command ends with exit code 1.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process a core

import argparse
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks import markdown
from benchmarks.markdown import table
from stream.errors import first_line
from tests.contract.matrix import COMMON, learners, shapes, verdict

DOCUMENT = Path(__file__).parent.parent.parent / "docs/encoders.md"
WORKS, REFUSED, DEFECT = "yes", "refused", "**defect**"
ROW = re.compile(r"^\| `([\w-]+)` \| (.*) \|$", re.MULTILINE)
MARKED = re.compile(r"<!-- matrix:families -->\n(.*?)<!-- end -->", re.DOTALL)
Found = Mapping[str, Mapping[str, str]]
"""What became of a learner on a shape: `found[shape][learner]`, as `judge` says it."""


def judge(name: str, shape: str) -> str:
    """Return nothing where a learner works, ``DEFECT`` and what happened, or why it refuses."""
    try:
        return verdict(name, shape)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a defect
        traceback.print_exc()
        return f"{DEFECT}: {type(error).__name__}: {first_line(error)}"


def judge_shape(shape: str, names: Sequence[str]) -> dict[str, str]:
    """Return what became of learners on a shape."""
    return {name: judge(name, shape) for name in names}


def cells(verdicts: Sequence[str]) -> list[str]:
    """Return the cells of the table for what `judge` returned."""
    return [
        DEFECT if found.startswith(DEFECT) else REFUSED if found else WORKS for found in verdicts
    ]


def matrix(found: Found) -> str:
    """Return the table: a row for each family, the common learners, then all others together."""
    lines = []
    for shape, verdicts in found.items():
        others = [name for name in verdicts if name not in COMMON]
        rest = dict(zip(others, cells([verdicts[name] for name in others]), strict=True))
        worse = [f"`{name}` {cell}" for name, cell in rest.items() if cell != WORKS]
        working = len(rest) - len(worse)
        said = f"all {working}" if not worse else f"{working} of {len(rest)}; {', '.join(worse)}"
        said = said if rest else "not run"
        lines.append([f"`{shape}`", *cells([verdicts[name] for name in COMMON]), said])
    names = ",".join(f"`{name}`" for name in COMMON)
    return table(f"family,{names},other learners", lines)


def reasons(found: Found) -> str:
    """Return the others by name, and why a learner refuses a family, or what happened."""
    others = [f"`{name}`" for name in learners() if name not in COMMON]
    because: dict[tuple[str, str], list[str]] = {}
    for shape, verdicts in found.items():
        for name, reason in verdicts.items():
            if reason:
                because.setdefault((name, reason), []).append(f"`{shape}`")
    lines = [f"Other learners: {', '.join(others)}."]
    lines += [f"- `{name}` on {', '.join(on)}: {why}" for (name, why), on in because.items()]
    return "\n\n".join([lines[0], "\n".join(lines[1:])]).rstrip()


def rows_in(text: str) -> dict[str, list[str]]:
    """Return the rows of the matrix in a document: the cells behind each family's name."""
    marked = MARKED.search(text)
    rows = ROW.findall(marked.group(1)) if marked else []
    return {shape: said.split(" | ") for shape, said in rows}


def fill(path: Path, found: Found) -> None:
    """Write the matrix into a Markdown file."""
    made = {"families": matrix, "reasons": reasons}
    markdown.fill(path, "matrix", lambda name: made[name](found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the matrix; return 1 where there is a defect."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.md")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--common", action="store_true", help="only the learners of the tests")
    given = parser.parse_args(arguments)
    names = COMMON if given.common else learners()
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        judged = pool.map(partial(judge_shape, names=names), shapes())
        found = dict(zip(shapes(), judged, strict=True))
    for path in given.files:
        fill(path, found)
    defects = [
        f"{name} on {shape}: {said}"
        for shape, verdicts in found.items()
        for name, said in verdicts.items()
        if said.startswith(DEFECT)
    ]
    print("\n".join(defects) or f"{sum(map(len, found.values()))} pairs, no defect")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
