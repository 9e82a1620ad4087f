"""Changes the program at one place after another: does a test fail each time?

Run: python -m benchmarks.stress.mutation [--only PATTERN] [--jobs N]. Each entry of
`benchmarks.stress.mutants` is written into a copy of the working tree, the tests that should notice
it run there, and the copy is restored. Exit code 1 where a mutant survives that the table does not
call equivalent, where an equivalent one is caught, or where tests fail without any mutant.

The parent imports the libraries once and never the program: each child is a copy of it (fork) that
imports the program from the mutated tree. Compiled files are there, and hold for one text alone.
"""

import argparse
import compileall
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", WANDB_MODE="offline")

import hypothesis
import pytest
import safetensors.torch
import sklearn.linear_model
import torch
import transformers

from benchmarks import ROOT
from benchmarks.fork import forked
from benchmarks.stress.mutants import MUTANTS, Mutant

# Transformers imports a class when it is first asked for; here once, instead of in every child.
IMPORTED = (hypothesis, safetensors.torch, sklearn.linear_model, torch, transformers.BertModel)
# The plugins' own modules were imported by the parent, whose assertions nobody has to read.
OPTIONS = ["-x", "-q", "-pno:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning"]
LONGEST_S = 600.0  # a mutant may never end; that is noticed, too
SURVIVED, CAUGHT, BROKEN = "survived", "caught", "broken"
VERDICTS = {0: SURVIVED, 1: CAUGHT}  # of pytest's exit codes; others tell no verdict of a test


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, in how many seconds, and the first test that failed."""

    mutant: Mutant | None
    verdict: str
    seconds: float
    test: str

    @property
    def is_as_expected(self) -> bool:
        """Whether it was caught, or is equivalent and survived, or is none and nothing failed."""
        harmless = self.mutant is None or self.mutant.equivalent
        return self.verdict == (SURVIVED if harmless else CAUGHT)


class OnlyOfLearner:
    """A pytest plugin that keeps the tests of one learner."""

    def __init__(self, name: str):
        self._name = name

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep those whose parameter ``name`` is the learner's."""
        calls = ((item, getattr(item, "callspec", None)) for item in items)
        items[:] = [i for i, call in calls if call and call.params.get("name") == self._name]


@dataclass
class Job:
    """Tests that run in a child, on a tree with at most one mutant in it.

    Attributes:
        tests: arguments of pytest, as in `Mutant.tests`; the first that fail end it.
        mutant: what is changed; None runs the tests on the program as it is.
        tree: where, and ``original``, the changed file's own text there.
        child: the process id.
        started: when, by the monotonic clock.
    """

    tests: Sequence[str]
    mutant: Mutant | None = None
    tree: Path = field(default_factory=Path)
    original: str = ""
    child: int = 0
    started: float = 0.0

    def start(self, tree: Path) -> None:
        """Write the mutant into ``tree``, and start a child that runs the tests there."""
        self.tree, self.started = tree, time.monotonic()
        if self.mutant is not None:
            self.original = (tree / self.mutant.file).read_text(encoding="utf-8")
            (tree / self.mutant.file).write_text(self.mutant.applied(tree), encoding="utf-8")
        log = _log(tree)
        log.write_text("")
        self.child = forked(lambda: sys.exit(_run_tests(tree, self.tests)), tree, log, log)

    def outcome(self) -> Outcome | None:
        """Return what became of it, with the tree restored; None while the child runs."""
        seconds = time.monotonic() - self.started
        late = seconds > LONGEST_S
        if late:
            os.kill(self.child, signal.SIGKILL)
        child, status = os.waitpid(self.child, 0 if late else os.WNOHANG)
        if not child:
            return None
        if self.mutant is not None:
            (self.tree / self.mutant.file).write_text(self.original, encoding="utf-8")
        code = os.waitstatus_to_exitcode(status)
        verdict = CAUGHT if late else VERDICTS.get(code, BROKEN)
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", _log(self.tree).read_text(), re.MULTILINE)
        test = found.group(1) if found else "does not end" if late else f"exit code {code}"
        return Outcome(self.mutant, verdict, seconds, test if verdict != SURVIVED else "")


def _log(tree: Path) -> Path:
    """Return the file with what the tests in ``tree`` print."""
    return tree.with_suffix(".log")


def _run_tests(tree: Path, tests: Sequence[str]) -> int:
    """Run tests on the program in ``tree``; return pytest's exit code. Called in a child."""
    sys.path[:] = [str(tree), *(p for p in sys.path if Path(p).resolve() != ROOT)]
    sys.dont_write_bytecode = True
    tempfile.tempdir = str(tree.parent)
    assert "stream" not in sys.modules
    import stream

    assert str(stream.__file__).startswith(str(tree)), stream.__file__
    for test in tests:
        path, _, learner = test.rstrip("]").partition("[")
        plugins = [OnlyOfLearner(learner)] if learner else []
        if code := pytest.main([*OPTIONS, path], plugins):
            return int(code)
    return 0


@contextmanager
def copies(count: int) -> Iterator[list[Path]]:
    """Copy what git knows of the working tree ``count`` times, for the time of the block."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    text = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in text.split("\0") if name and (ROOT / name).exists()]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        trees = [Path(folder).resolve() / f"tree{number}" for number in range(count)]
        for tree in trees:
            for name in names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
            checked = py_compile.PycInvalidationMode.CHECKED_HASH  # no mutant is hidden by a date
            compileall.compile_dir(tree, quiet=2, invalidation_mode=checked)
        yield trees


def outcomes(jobs: Sequence[Job], trees: Sequence[Path]) -> Iterator[Outcome]:
    """Yield what becomes of every job; as many run at a time as there are trees."""
    waiting, free, running = list(jobs), list(trees), []
    while waiting or running:
        while waiting and free:
            job = waiting.pop(0)
            job.start(free.pop())
            running.append(job)
        for job in list(running):
            if (outcome := job.outcome()) is not None:
                running.remove(job)
                free.append(job.tree)
                yield outcome
        time.sleep(0.05)


def show(outcome: Outcome) -> None:
    """Print a line for one outcome."""
    mutant = outcome.mutant
    what = "no mutant" if mutant is None else f"{mutant.file}: {mutant.change}"
    mark = "" if outcome.is_as_expected else "  <--"
    print(f"{outcome.verdict:8} {outcome.seconds:5.1f} s  {what}  {outcome.test}{mark}", flush=True)


def show_table(found: Sequence[Outcome]) -> None:
    """Print how many mutants of each file were caught, survived, or are equivalent."""
    counts: dict[str, Counter[str]] = {}
    for outcome in found:
        if (mutant := outcome.mutant) is not None:
            column = "equivalent" if mutant.equivalent else outcome.verdict
            counts.setdefault(mutant.file, Counter())[column] += 1
    columns = (CAUGHT, SURVIVED, "equivalent", BROKEN)
    print(f"\n| file | mutants | {' | '.join(columns)} |\n|---|{'---|' * (1 + len(columns))}")
    total = Counter[str]()
    for file, row in sorted(counts.items()):
        total += row
        print(f"| `{file}` | {row.total()} | {' | '.join(str(row[c]) for c in columns)} |")
    print(f"| all | {total.total()} | {' | '.join(str(total[c]) for c in columns)} |")


def main() -> int:
    """Run the tests without a mutant, then with each one; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="in the file or the change")
    parser.add_argument("--jobs", type=int, default=1, help="tests that run at a time")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if re.search(arguments.only, f"{m.file}: {m.change}")]
    plain = [Job([test]) for test in sorted({test for m in chosen for test in m.tests})]
    found = []
    with copies(arguments.jobs) as trees:
        for jobs in (plain, [Job(m.tests, m) for m in chosen]):
            for outcome in outcomes(jobs, trees):
                show(outcome)
                found.append(outcome)
    show_table(found)
    return 0 if chosen and all(outcome.is_as_expected for outcome in found) else 1


if __name__ == "__main__":
    sys.exit(main())
