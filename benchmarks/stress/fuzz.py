"""Hostile input: whatever stands in a record, a task's YAML or its data, the answer is one line.

Run: python -m benchmarks.stress.fuzz --seconds 600 --seed 0. Changes valid input at random
(hypothesis) and gives it to the commands that read it. Found are: an exception, an answer after
more than 20 seconds, a file outside the folder that the command was told. What is found ends it,
with the smallest input that hypothesis finds.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="fuzz-cache-")

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analysis.__main__ import main as analysis
from benchmarks import ROOT
from benchmarks.stress.fuzz_input import changed, torn
from stream.cli.main import main as task_stream
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run.load import config_on
from stream.run.settings import register_groups

ANSWER_S = 20
ROUND = 20  # examples between two looks at the clock
SMOKE = ("experiment=smoke", "device=cpu", "task=[stsb,cola]", "probe.every=4")
TASK = {
    "title": "mine",
    "kind": "single",
    "labels": ["bad", "good"],
    "metric": "accuracy",
    "source": "generated for fuzzing",
    "files": {"folder": ".", "splits": {"all": "mine.csv"}, "text": ["text"], "label": "label"},
}
CSV = "id;text;label\n" + "".join(
    f'{i};"row {i} is ""{word}"", really";{word}\n'
    for i, word in enumerate(["bad", "good"] * 30, start=1)
)


class TooSlowError(Exception):
    """No answer in time."""


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Raise `TooSlowError` in the block when it takes too long."""

    def ring(signum: int, frame: Any) -> None:
        del signum, frame
        raise TooSlowError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(ANSWER_S)
    try:
        yield
    finally:
        signal.alarm(0)


def tree(folder: Path, without: Path) -> set[Path]:
    """Return what lies in a folder, without one part of it."""
    return {path for path in folder.rglob("*") if without not in (path, *path.parents)}


def answered(command: Callable[[], Any], room: Path) -> None:
    """Call a command; it may exit with a message, but neither raise nor write outside ``room``."""
    before = tree(room.parent, room)
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), in_time():
        code: Any = 0
        try:
            command()
        except UserError:
            code = 2
        except SystemExit as error:
            code = error.code
    assert code in (0, 1, 2, None), f"exit code {code}"
    assert tree(room.parent, room) == before, "a file outside the folder"


class Fuzzed:
    """The targets: each takes hypothesis' ``draw`` and makes one attempt."""

    def __init__(self, root: Path):
        self._room = root / "room"
        self._room.mkdir()
        subprocess.run(
            [sys.executable, str(ROOT / "run_stream.py"), *SMOKE, f"hydra.run.dir={root / 'run'}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self._record = json.loads((root / "run/results.json").read_text(encoding="utf-8"))
        task_stream(
            ["export", str(root / "run"), "--task", "cola", "--out", str(root / "exported")]
        )
        self._facts = json.loads((root / "exported/task.json").read_text(encoding="utf-8"))
        self._run, self._exported = root / "run", root / "exported"

    def _command(self, main: Callable[..., Any], *arguments: object) -> None:
        answered(partial(main, [str(argument) for argument in arguments]), self._room)

    def _copied(self, name: str, source: Path, file: str, content: bytes) -> Path:
        """Return a folder in the room: one file has new content, the others are links.

        Args:
            name: of the folder.
            source: what its other files link to.
            file: the name of the one file.
            content: its content.
        """
        folder = self._room / name
        folder.mkdir(exist_ok=True)
        for path in source.iterdir():
            link = folder / path.name
            if path.name != file and not link.exists():
                link.symlink_to(path)
        (folder / file).write_bytes(content)
        return folder

    def record(self, draw: Callable[[Any], Any]) -> None:
        """results.json, for everything that reads it."""
        content = json.dumps(changed(draw, self._record)).encode()
        if draw(st.integers(0, 5)) == 0:
            content = torn(draw, content)
        folder = self._copied("run", self._run, "results.json", content)
        out = self._room / "out"
        what = draw(st.sampled_from(["compare", "report", "figures", "verify", "resume", "export"]))
        if what == "resume":
            answered(lambda: config_on("cpu", RunRecord.read(folder)), self._room)
        elif what == "export":
            self._command(
                task_stream, "export", folder, "--task", "cola", "--out", out / str(time.time_ns())
            )
        elif what == "verify":
            self._command(analysis, "verify", folder)
        elif what == "compare":
            self._command(analysis, "compare", folder, "--csv", out / "x.csv", "--latex", out / "x")
        else:
            self._command(
                analysis, what, folder, "--out", out / ("x.html" if what == "report" else "f")
            )

    def facts(self, draw: Callable[[Any], Any]) -> None:
        """task.json of an exported task."""
        from stream.run.predict import Service

        content = json.dumps(changed(draw, self._facts)).encode()
        folder = self._copied("exported", self._exported, "task.json", content)
        answered(lambda: Service(folder, "cpu").predict("cola", ["a text"]), self._room)

    def _shown(self, text: bytes, data: bytes, file: str = "mine.csv") -> None:
        """Show a task.

        Args:
            text: its YAML.
            data: the content of its data file.
            file: the name of that file.
        """
        (self._room / "my/task").mkdir(parents=True, exist_ok=True)
        (self._room / "my/task/mine.yaml").write_bytes(text)
        (self._room / file).write_bytes(data)
        given_ = ("data=files", f"data.root={self._room}", "backbone=tiny", "--config-dir")
        self._command(task_stream, "tasks", "show", "mine", *given_, self._room / "my")

    def task(self, draw: Callable[[Any], Any]) -> None:
        """The YAML of a task."""
        values = {"mine": changed(draw, TASK)}
        text = yaml.safe_dump(values, allow_unicode=True).encode("utf-8", "surrogatepass")
        self._shown(torn(draw, text) if draw(st.integers(0, 3)) == 0 else text, CSV.encode())

    def table(self, draw: Callable[[Any], Any]) -> None:
        """A file of separated values, looked at and read as a task."""
        data = torn(draw, CSV.encode())
        self._shown(yaml.safe_dump({"mine": TASK}).encode(), data)
        out = self._room / "inspected" / str(time.time_ns())
        self._command(task_stream, "tasks", "inspect", self._room / "mine.csv", "--out", out)

    def parquet(self, draw: Callable[[Any], Any]) -> None:
        """A Parquet file."""
        words = ["bad", "good"] * 10
        made = io.BytesIO()
        pq.write_table(pa.table({"text": [f"row {i}" for i in range(20)], "label": words}), made)
        spec = {**TASK, "files": {**TASK["files"], "splits": {"all": "mine.parquet"}}}
        self._shown(
            yaml.safe_dump({"mine": spec}).encode(), torn(draw, made.getvalue()), "mine.parquet"
        )


def attack(target: Callable[..., None], number: int) -> None:
    """Make one round of attempts.

    Raises:
        Exception: what the smallest input that was found raises.
    """

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.data())
    def round_(data: Any) -> None:
        target(data.draw)

    round_()


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack until the time is up; print what was tried; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one target: record, facts, task, table, parquet")
    given_ = parser.parse_args(arguments)
    register_groups()
    fuzzed = Fuzzed(Path(tempfile.mkdtemp(prefix="fuzz-")))
    targets = [fuzzed.record, fuzzed.facts, fuzzed.task, fuzzed.table, fuzzed.parquet]
    targets = [target for target in targets if given_.only in (None, target.__name__)]
    tried: Counter[str] = Counter()
    deadline, number = time.monotonic() + given_.seconds, given_.seed * 10**6
    while time.monotonic() < deadline:
        for target in targets:
            number += 1
            attack(target, number)
            tried[target.__name__] += ROUND
    print("nothing found in", ", ".join(f"{count} x {name}" for name, count in tried.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
