"""Kills runs at random moments and goes on with them: do they end as if nothing had happened?

Run: python -m benchmarks.stress.kill --kills 200 --learners all --seed 0. For each learner, small
runs get a random signal (SIGKILL, or one of those that ask to save and stop) at random calls of the
functions in `MOMENTS` or at random times, and are resumed. Each must end with the unbroken run's
results.json (times aside), weights and files; that run is made in another interpreter, so that
nothing rests on the order of a set (not with ``--forked``, which saves its imports). Exit code 1
otherwise. Several processes can share the work, each with a ``--part`` of the learners.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.stress.moments import MOMENTS, count_calls, die_at
from benchmarks.stress.other_interpreter import OtherInterpreter
from benchmarks.warm import forked, run_main, warm_up  # which sets the number of threads first
from stream.cli.boundary import SIGNALLED
from stream.files.run_folder import FILE_NAME
from stream.learners import LEARNERS
from stream.record.run_record import RunRecord
from stream.run.checkpoint import CheckpointStore
from stream.run.interrupt import WARNINGS

TASKS = "task=[stsb,cola,crowdflower_airline]"
SMALL = ("experiment=smoke", "device=cpu", TASKS)
STEPS = ("training.epochs=3", "checkpoint.every=2", "probe.every=4", "count_flops=true")
CASES = {
    name: (f"learner={name}", *(STEPS if kind.tags.makes_steps else ()))
    for name, kind in LEARNERS.items()
}
CASES["inferred"] = ("learner=finetune", "scenario=inferred", *STEPS)
CASES["joint_prefix"] = ("learner=joint", "learner.prefix=true", *STEPS)
TIMER = "any time"
SIGNALS = {s.name: s for s in (signal.SIGKILL, signal.SIGTERM, *WARNINGS)}
# A run that saved ends with 128 and the number; one that had not begun dies of the signal.
STOPPED = {code for number in SIGNALS.values() for code in (-number, SIGNALLED + number)}


@dataclass
class Outcome:
    """What became of one learner's runs.

    Attributes:
        kills: how many at each stage.
        anew: kills before the first record, after which the run was started anew.
        resumed: starts that went on with a run.
        runs: runs that ended.
        problems: one line per run that did not end as the unbroken one.
    """

    kills: Counter[str] = field(default_factory=Counter)
    anew: int = 0
    resumed: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)


def ended(child: int, seconds: float | None = None, signum: int = signal.SIGKILL) -> int:
    """Wait for a process, which gets a signal after ``seconds``; return its exit code."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, 0 if deadline is None else os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if deadline is not None and time.monotonic() > deadline:
            os.kill(child, signum)
            deadline = None
        time.sleep(0.002)


def comparable(folder: Path) -> dict[str, Any]:
    """Return results.json without times and overrides, the tasks of rows, and digests of groups."""
    results = msgspec.to_builtins(RunRecord.read(folder))
    for name in ("timing", "overrides"):
        results.pop(name)
    results["config"].pop("resume")
    if results["probe"] is not None:
        results["probe"].pop("seconds")
    for cell in (cell for row in results["cells"] for cell in row if cell):
        cell.pop("seconds")
        if cell["routed"] is not None:
            cell["routed"].pop("seconds")
    if results["routing"] is not None:
        results["routing"].pop("learn_s")
    store = CheckpointStore(folder)
    found = store.latest()
    assert found is not None, "no checkpoint"
    rows = [json.loads(line)["task"] for line in (found.rows and store.rows(found)) or ()]
    return {**results, "rows": rows, "groups": found.groups}


def complete(folder: Path) -> bool:
    """Return whether the run is done on disk."""
    return (folder / FILE_NAME).exists() and RunRecord.read(folder).status == "complete"


def differences(folder: Path, whole: Path) -> Iterator[str]:
    """Yield what differs between a run that was killed and the unbroken one."""
    broken, unbroken = comparable(folder), comparable(whole)
    yield from (key for key in unbroken if broken.get(key) != unbroken[key])
    yield from (f"left over: {p.name}" for p in folder.rglob(".*"))


class Killing:
    """Kills runs of one learner until there were enough kills."""

    def __init__(
        self,
        root: Path,
        name: str,
        chosen: random.Random,
        signals: Sequence[int],
        other: OtherInterpreter | None,
    ):
        self._signals = signals
        self._other = other
        self._root = root
        self._log = root / "attempts.log"
        self._settings = (*SMALL, *CASES[name])
        self._chosen = chosen
        self._stages: list[str] = []
        self.outcome = Outcome()

    def prepare(self) -> None:
        """Make the unbroken run, and count its calls."""
        counts, whole = self._root / "counts.json", self._root / "whole"
        started = time.monotonic()
        if self._other is None:
            code = self._ended(whole, lambda: count_calls(counts), None)
        else:
            settings = (*self._settings, f"hydra.run.dir={whole}")
            code = self._other.counted(settings, self._root, self._log, counts)
        if code != 0:
            raise RuntimeError(f"the unbroken run: exit code {code}, see {self._log}")
        self._seconds = time.monotonic() - started
        self._calls = {"restore": 1, **json.loads(counts.read_text())}

    def _ended(
        self,
        folder: Path,
        prepare: Callable[[], None],
        seconds: float | None,
        signum: int = signal.SIGKILL,
    ) -> int:
        """Start a run or resume it; return its exit code.

        Args:
            folder: the run folder.
            prepare: called in the run's process before the program.
            seconds: when it gets the signal, None for never.
            signum: the signal.
        """
        begun = (folder / FILE_NAME).exists()
        if begun:
            arguments: Sequence[str] = (
                f"resume={folder}",
                TASKS,
            )  # without them, all of the paper are composed
        else:  # killed before the first record: there is nothing to go on from
            arguments = (*self._settings, f"hydra.run.dir={folder}")
        self.outcome.resumed += begun

        def program() -> None:
            prepare()
            run_main(arguments)

        return ended(forked(program, self._root, self._log, self._log), seconds, signum)

    def _next_stage(self) -> str:
        """Return where to die next: every stage once, in random order, and then again."""
        if not self._stages:
            self._stages = [*self._calls, TIMER]
            self._chosen.shuffle(self._stages)
        return self._stages.pop()

    def one_run(self, folder: Path, kills: int) -> None:
        """Kill one run at most ``kills`` times until it is done, and compare it."""
        outcome, code = self.outcome, -signal.SIGKILL
        while code in STOPPED:
            signum = self._chosen.choice(self._signals)
            stage = self._next_stage() if kills > 0 else ""
            seconds = self._chosen.random() * self._seconds if stage == TIMER else None
            # Early calls, so that a run is killed several times before it is done.
            number = self._chosen.randint(1, 1 + self._calls.get(stage, 1) // 3)
            dies = stage in MOMENTS
            prepare = (
                (lambda s=stage, n=number, k=signum: die_at(s, n, k)) if dies else lambda: None
            )
            code = self._ended(folder, prepare, seconds, signum)
            killed = code in STOPPED
            kills -= killed
            outcome.kills[stage] += killed
            outcome.anew += killed and not (folder / FILE_NAME).exists()
            if killed and complete(folder):
                code = 0  # dead after the last word: there is nothing to go on with
        outcome.runs += 1
        if code != 0:
            outcome.problems.append(f"run {outcome.runs}: exit code {code}, see {self._log}")
            return
        found = list(differences(folder, self._root / "whole"))
        outcome.problems += [f"run {outcome.runs}: {', '.join(found)}"] if found else []
        shutil.rmtree(folder)

    def until(self, kills: int) -> Outcome:
        """Make runs until they were killed ``kills`` times in all; return what became of them."""
        self.prepare()
        while (left := kills - self.outcome.kills.total()) > 0:
            self.one_run(self._root / f"run-{self.outcome.runs}", left)
        return self.outcome


def line(name: str, outcome: Outcome) -> str:
    """Return one line of the table."""
    stages = ", ".join(f"{stage} {n}" for stage, n in sorted(outcome.kills.items()) if n)
    verdict = "; ".join(outcome.problems) or "equal"
    numbers = f"{outcome.kills.total():>6}{outcome.runs:>6}{outcome.resumed:>9}{outcome.anew:>6}"
    return f"{name:<14}{numbers}  {verdict} ({stages})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20, help="of each learner's runs")
    parser.add_argument("--learners", default="all", help=f"all, or of {', '.join(CASES)}")
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=[*SIGNALS])
    parser.add_argument("--part", default="1/1", help="of the learners, such as 1/2: by turns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forked", action="store_true", help="the unbroken run too")
    given = parser.parse_args(arguments)
    signals = [SIGNALS[name] for name in given.signals]
    names = list(CASES) if given.learners == "all" else given.learners.split(",")
    part, parts = map(int, given.part.split("/"))
    names = names[part - 1 :: parts]
    print(f"{'learner':<14}{'kills':>6}{'runs':>6}{'resumed':>9}{'anew':>6}")
    failed = False
    warm_up()
    other = None if given.forked else OtherInterpreter()
    for name in names:
        root = Path(tempfile.mkdtemp(prefix=f"kill-{name}-"))
        chosen = random.Random(f"{given.seed} {name}")
        killing = Killing(root, name, chosen, signals, other)
        outcome = killing.until(given.kills)
        print(line(name, outcome), flush=True)
        if outcome.problems:
            failed = True
        else:
            shutil.rmtree(root)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
