"""Going on with a run: equal to an unbroken one, and only with what cannot change results."""

import signal
import time
from pathlib import Path

import pytest

from benchmarks.stress.kill import comparable
from stream.record.run_record import RunRecord
from stream.run.checkpoint import CheckpointStore
from tests.run.learned import learned, refused
from tests.run.program import ROOT, TINY, Started, run, run_plain, start

pytestmark = pytest.mark.slow


TWO = "task=[stsb,cola]"  # given again, so that not every task of the paper is composed


def test_killed_at_random_moments_it_ends_as_if_it_had_not(tmp_path: Path) -> None:
    given = ("--kills", "1", "--learners", "inferred", "--forked")
    environment = {"TMPDIR": str(tmp_path)}
    started = Started(ROOT, "benchmarks.stress.kill", *given, environment=environment)
    code, out, err = started.result()
    assert (code, err) == (0, "")
    assert "equal" in out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """A run that SIGTERM stopped, in the folder ``run``."""
    folder = tmp_path_factory.mktemp("stopped")
    given = ("task=[stsb,cola]", "training.epochs=3000", "checkpoint.every=2")
    process = start(folder, *given, "hydra.run.dir=run")
    deadline = time.monotonic() + 120
    while not (folder / "run/checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    return folder, process.returncode, err


def test_sigterm_saves_and_exits_143(stopped: tuple[Path, int, str]) -> None:
    folder, code, err = stopped
    assert code == 143
    assert err.startswith("error: stopped by SIGTERM; go on with: resume=")
    found = CheckpointStore(folder / "run").latest()
    assert found is not None
    assert found.state["training"]["batch"] >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TWO, "seed=3"), "seed was 0, now 3 "),
        ((TWO, "learner=finetune"), "learner.name was adapter, now finetune"),
        (("task=[cola,stsb]",), "the tasks of a run can only be extended"),
        (("resume=nowhere",), "no run at nowhere"),
    ],
)
def test_what_would_change_results_is_refused_with_the_difference(
    stopped: tuple[Path, int, str], arguments: tuple[str, ...], message: str
) -> None:
    chosen = arguments if arguments[0].startswith("resume") else ("resume=run", *arguments)
    assert message in refused(stopped[0], *chosen)


def stop_after_a_checkpoint(folder: Path, *arguments: str) -> tuple[int, str]:
    """Start the program, stop it once it wrote a checkpoint; return exit code and error output."""
    store = CheckpointStore(folder / "runs/one")
    before = store.generations()
    process = start(folder, *arguments)
    deadline = time.monotonic() + 120
    while store.generations() == before and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=60), process.communicate()[1]


def test_auto_goes_on_with_the_unfinished_run_of_the_same_configuration(tmp_path: Path) -> None:
    given = ("task=[stsb,cola]", "training.epochs=3000", "checkpoint.every=2")
    assert stop_after_a_checkpoint(tmp_path, *given, "hydra.run.dir=runs/one")[0] == 143
    store = CheckpointStore(tmp_path / "runs/one")
    first = store.latest()
    # Tracker, probe and times of checkpoints change no result, so they may differ.
    free = ("checkpoint.every=3", "probe.every=50", "tracking=none", "device=cpu")
    assert stop_after_a_checkpoint(tmp_path, *given[:2], *free, "resume=auto")[0] == 143
    second = store.latest()
    assert first is not None
    assert second is not None
    steps = [found.state["training"]["losses"] for found in (first, second)]
    assert steps[1][: len(steps[0])] == steps[0]
    assert len(steps[1]) > len(steps[0])
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["one"]
    code, out, err = run(tmp_path, "task=[stsb,cola]", "training.epochs=1", "resume=auto")
    assert (code, err) == (0, ""), out
    assert len(list(tmp_path.rglob("results.json"))) == 2  # another configuration: a new run


def test_changed_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "my/task").mkdir(parents=True)
    rows = [f"row {i} is {word}\t{word}" for i, word in enumerate(["bad", "good"] * 40)]
    table = tmp_path / "mine.tsv"
    table.write_text("\n".join(["text\tlabel", *rows]))
    (tmp_path / "my/task/mine.yaml").write_text(
        "mine: {title: mine, kind: single, labels: [bad, good], metric: accuracy, source: made,"
        " files: {folder: ., splits: {all: mine.tsv}, text: [text], label: label}}"
    )
    data = ("data=files", f"data.root={tmp_path}", "--config-dir", "my")
    tiny = ("backbone=tiny", "tracking=none", "device=cpu", "training.min_steps=4")
    assert run_plain(tmp_path, *data, *tiny, "task=[mine]", "hydra.run.dir=run")[0] == 0
    (tmp_path / "other.tsv").write_text(table.read_text().replace("row", "line"))
    more = (tmp_path / "my/task/mine.yaml").read_text()
    more = more.replace("mine: {", "more: {").replace("mine.tsv", "other.tsv")
    (tmp_path / "my/task/more.yaml").write_text(more)
    given = (*data, "resume=run", "task=[mine,more]")
    was = table.read_text()
    table.write_text(was.replace("row 7 is", "row 7 was"))
    told = refused(tmp_path, *given)
    assert "the data changed since" in told
    assert "was written, in: mine" in told
    table.write_text(was)
    assert run_plain(tmp_path, *given)[0] == 0


def test_two_processes_cannot_write_to_one_folder(tmp_path: Path) -> None:
    given = ("task=[stsb]", "training.epochs=4000", "checkpoint.every=2", "hydra.run.dir=run")
    process = start(tmp_path, *given)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run/checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGSTOP)  # it need not compute meanwhile
    try:
        assert "another process is writing to" in refused(tmp_path, "resume=run")
    finally:
        process.kill()


def test_a_finished_stream_grows_as_if_it_had_been_longer(tmp_path: Path) -> None:
    """With stored examples and probes; that every learner goes on is said in tests.contract."""
    given = ("learner=replay", "probe.every=4")
    learned(tmp_path / "grown", *given, TWO)
    told = refused(tmp_path, "resume=grown", TWO)
    assert "is complete; it can only go on with more tasks" in told
    longer = "task=[stsb,cola,crowdflower_airline]"
    code, _, err = run_plain(tmp_path, "resume=grown", longer)
    assert (code, err) == (0, "")
    learned(tmp_path / "whole", *given, longer)
    assert comparable(tmp_path / "grown") == comparable(tmp_path / "whole")
    began, went_on = [*TINY, *given, "task=[stsb,cola]"], ["resume=grown", longer]
    assert RunRecord.read(tmp_path / "grown").overrides == [*began, *went_on]
