"""``analysis verify``: agrees with an honest run, and finds every byte that was changed."""

import json
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from analysis.__main__ import main
from benchmarks.in_process import composed
from benchmarks.stress.kill import comparable
from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.errors import UserError
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.interrupt import Interrupted, StopRequest
from stream.run.predict import Service
from stream.run.runner import run_stream
from stream.run.verify import verify
from tests.run import first_schema
from tests.run.learned import learned
from tests.run.program import run_plain

pytestmark = pytest.mark.slow

CSV = "text;label\n" + "".join(
    f"row {i} is {'good' if i % 2 else 'bad'};{i % 2}\n" for i in range(90)
)
YAML = """
files:
  folder: .
  splits: {all: mine.csv}
  text: [text]
  label: label
title: mine
kind: single
labels: ["0", "1"]
metric: accuracy
source: made for a test
"""


@pytest.fixture(scope="module", params=["adapter", "finetune"])
def honest(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "run"
    given = ("task=[stsb,cola]", "count_flops=true", "probe.every=3", f"learner={request.param}")
    return learned(folder, *given)


def test_an_honest_run_agrees(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(honest), "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "all agree" in out
    assert "DIFFERENT" not in out


def test_a_flipped_bit_is_found_in_every_file(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = random.Random(0)
    files = sorted(p for p in honest.rglob("*") if p.is_file() and "checkpoint" in p.parts)
    assert {path.suffix for path in files} >= {".json", ".safetensors"}
    files += [honest / "rows.jsonl"] * 2
    for path in [*files, *[honest / "results.json"] * 6]:
        copy = Path(shutil.copytree(honest, tmp_path / "copy"))
        target = copy / path.relative_to(honest)
        data = bytearray(target.read_bytes())
        place = chosen.randrange(len(data))
        data[place] ^= 1 << chosen.randrange(8)
        target.write_bytes(data)
        at = (path, data[max(place - 20, 0) : place + 20])
        assert main(["verify", str(copy), "--device", "cpu"]) != 0, at
        shutil.rmtree(copy)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("keys", "value", "named"),
    [
        (("cells", 1, 0, "score"), 0.9, "matrix, computed again"),
        (("cells", 1, 0, "digest"), "0" * 64, "stsb: digest, last row"),
        (("metrics", "forgetting"), 0.5, "metrics, computed again"),
        (("ledger", "tasks", 1, "stored_parameters"), 5, "stored parameters"),
        (("fingerprints", "cola"), "0" * 64, "cola: fingerprint"),
        (("losses", "cola", 2), 0.1, "what the checkpoint holds"),
    ],
)
def test_a_changed_record_is_found_by_what_was_changed(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], keys, value, named: str
) -> None:
    copy = Path(shutil.copytree(honest, tmp_path / "copy"))
    results = json.loads((copy / "results.json").read_text())
    node = results
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    (copy / "results.json").write_text(json.dumps(results))
    assert main(["verify", str(copy), "--device", "cpu"]) == 1
    lines = " ".join(capsys.readouterr().out.split())
    assert all(word in lines for word in named.split())
    assert "DIFFERENT" in lines


def test_a_status_that_does_not_exist_is_no_record(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(honest, tmp_path / "copy"))
    text = (copy / "results.json").read_text()
    (copy / "results.json").write_text(text.replace('"complete"', '"cnmplete"', 1))
    assert main(["verify", str(copy), "--device", "cpu"]) == 2
    assert "$.status" in capsys.readouterr().err


def test_changed_data_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    (tmp_path / "my/task").mkdir(parents=True)
    indented = "".join(f"  {line}\n" for line in YAML.strip().splitlines())
    (tmp_path / "my/task/mine.yaml").write_text(f"mine:\n{indented}")
    folder = tmp_path / "run"
    given = ["--config-dir", "my", "task=[mine]", "data=files", f"data.root={tmp_path}"]
    given += ["backbone=tiny", "tracking=none", "device=cpu", "training.min_steps=4"]
    assert run_plain(tmp_path, *given, f"hydra.run.dir={folder}")[0] == 0
    assert main(["verify", str(folder), "--device", "cpu"]) == 0
    (tmp_path / "mine.csv").write_text(CSV.replace("row 7 is", "row 7 was"))
    assert main(["verify", str(folder), "--device", "cpu"]) == 1
    assert "data, computed again" in " ".join(capsys.readouterr().out.split())


def test_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> list[StopRequest]:
    """The request of the next run in this process."""
    made: list[StopRequest] = []

    @contextmanager
    def requests() -> Iterator[StopRequest]:
        made.append(StopRequest())
        yield made[-1]

    monkeypatch.setattr("stream.run.runner.stop_requests", requests)
    return made


TWO_TASKS = ("experiment=smoke", "device=cpu", "task=[stsb,cola]")


class Stopping(Display):
    """Asks for a stop at a step of a task, or while a row is scored."""

    def __init__(self, folder: Path, requests: list[StopRequest], stage: str, index: int):
        super().__init__(Console(quiet=True), folder)
        self._requests, self._place, self._index = requests, (stage, index), -1

    def learning(self, index: int, task: Task) -> None:
        self._index = index
        super().learning(index, task)

    def step(self, step: int, steps: int, examples: int) -> None:
        if (f"step {step}", self._index) == self._place:
            self._requests[-1].signum = signal.SIGTERM
        super().step(step, steps, examples)

    def evaluating(self, index: int, tasks: int) -> None:
        if ("scoring", index) == self._place:
            self._requests[-1].signum = signal.SIGTERM
        super().evaluating(index, tasks)


@pytest.mark.parametrize("learner", ["adapter", "finetune"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_run_stopped_within_a_task_agrees_with_its_record(
    asked_to_stop: list[StopRequest], tmp_path: Path, learner: str, index: int
) -> None:
    chosen = composed([*TWO_TASKS, f"learner={learner}"])
    with Stopping(tmp_path, asked_to_stop, "step 3", index) as display, pytest.raises(Interrupted):
        run_stream(chosen, tmp_path, display=display, tracker=NoTracking())
    checks = list(verify(tmp_path, "cpu"))
    assert [check for check in checks if not check.ok] == []
    halfway = learner == "finetune" or index == 0
    assert any(check.what == "weights of a finished row" for check in checks) == halfway
    if learner == "finetune":
        with pytest.raises(UserError, match="go on first: resume="):
            Service(tmp_path)


def test_a_stop_while_a_row_is_scored_loses_nothing(
    asked_to_stop: list[StopRequest], tmp_path: Path
) -> None:
    chosen = composed([*TWO_TASKS, "learner=finetune"])
    with Stopping(tmp_path, asked_to_stop, "scoring", 0) as display, pytest.raises(Interrupted):
        run_stream(chosen, tmp_path, display=display, tracker=NoTracking())
    found = CheckpointManager(tmp_path, CheckpointConfig()).latest()
    assert found is not None
    assert found.training is None
    assert len(found.record.ledger.tasks) == 1
    assert len(json.loads((tmp_path / "results.json").read_text())["ledger"]["tasks"]) == 1


@pytest.mark.parametrize("learner", ["adapter", "finetune"])
def test_a_run_of_the_first_schema_is_verified_and_goes_on_to_the_same_end(
    asked_to_stop: list[StopRequest], tmp_path: Path, learner: str
) -> None:
    """It was stopped within its second task; what it goes on with has the form of today."""
    chosen = composed([*TWO_TASKS, f"learner={learner}", "evaluation.reuse=on", "probe.every=2"])
    one, whole = tmp_path / "one", tmp_path / "whole"
    for folder in (one, whole):
        folder.mkdir()
    with Stopping(one, asked_to_stop, "step 3", 1) as display, pytest.raises(Interrupted):
        run_stream(chosen, one, display=display, tracker=NoTracking())
    first_schema.rewrite(one)
    assert [check for check in verify(one, "cpu") if not check.ok] == []
    for folder in (one, whole):
        with Display(Console(quiet=True), folder) as display:
            run_stream(chosen, folder, display=display, tracker=NoTracking(), resume=folder == one)
    assert comparable(one) == comparable(whole)
    lines = [(folder / "rows.jsonl").read_text().splitlines() for folder in (one, whole)]
    assert [[json.loads(line)["task"] for line in file] for file in lines] == [["stsb", "cola"]] * 2
    assert [check for check in verify(one, "cpu") if not check.ok] == []
    first_schema.rewrite(whole)
    assert [check for check in verify(whole, "cpu") if not check.ok] == []
