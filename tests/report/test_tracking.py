"""W&B offline, read back with its own tool; and W&B broken, which must change nothing."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import wandb

from stream.errors import UserError
from stream.record.matrix import Cell
from stream.record.run_record import RunRecord
from stream.report import tracking
from stream.report.tracking import NoTracking, WandbTracking, group_name, login_exists
from tests.record.made_record import made_record

SERVER = "https://wandb.example"


def made(num_done: int) -> RunRecord:
    """The record of two tasks after some of them."""
    record = made_record(2, config={"seed": 3, "learner": {"lr": 1e-3}}, seed=3)
    record.order, record.ledger.base_parameters = ["a", "b"], 10
    for after, (scores, stored) in enumerate([([0.5], 10), ([0.5, 0.75], 15)][:num_done]):
        for on, score in enumerate(scores):
            record.score_matrix.record(after, on, Cell(score, "digest", "measured", 0.1))
        record.matrix = record.score_matrix.scores_or_none()
        record.ledger.add(record.order[after], 5, (stored, 4 * stored), (0, 0))
    record.metrics |= {"average_score": 0.625}
    return record


EMPTY, RECORD = made(0), made(2)


def track(folder: Path, *, fail: bool = False) -> None:
    with WandbTracking() as tracker:
        tracker.start(folder, EMPTY)
        tracker.row(0, RECORD)
        tracker.row(1, RECORD)
        if fail:
            raise RuntimeError("a run that fails")
        picture = folder / "matrix.png"
        from matplotlib.figure import Figure

        Figure().savefig(picture)
        tracker.finish(RECORD, [picture])


def records(folder: Path) -> list[dict[str, Any]]:
    """Read the offline run file back with W&B's public tool."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    command = [str(Path(sys.executable).parent / "wandb"), "leet", "inspect", "--json", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.strip()]


def test_an_offline_run_holds_rows_table_image_and_names(tmp_path: Path) -> None:
    track(tmp_path)
    text = json.dumps(records(tmp_path))
    for expected in ("score/a", "score/b", "summary/average_score", "summary/stored_parameters"):
        assert expected in text
    assert "task_index" in text
    assert "adapter-s3" in text
    assert "custom/adapter/tiny/generated" in text
    assert "data:generated" in text
    assert list(tmp_path.glob("wandb/offline-run-*/files/media/table/*.table.json"))
    assert list(tmp_path.glob("wandb/offline-run-*/files/media/images/figures/*.png"))
    lines = list(tmp_path.glob("wandb/offline-run-*/files/media/table/score of*.table.json"))
    rows = json.loads(lines[0].read_text())["data"]
    assert sorted(rows) == [[1, "a", 0.5], [2, "a", 0.5], [2, "b", 0.75]]
    assert not (Path.cwd() / "wandb").exists()


def test_groups_hold_runs_whose_scores_differ_by_their_seed_only() -> None:
    def name(**settings: Any) -> str:
        config = {**RECORD.config, **settings}
        return group_name(msgspec.structs.replace(RECORD, config=config))

    assert name().startswith("custom/adapter/tiny/generated/")
    assert name() == name(seed=4, device="cuda") == name(resume="runs/x") == name(experiment="x")
    assert name() != name(learner={"lr": 1e-4})


def histories(folder: Path) -> list[dict[str, float]]:
    """What was logged against the task index, a dictionary a row."""
    rows = [record["history"]["item"] for record in records(folder) if "history" in record]
    return [row for row in rows if "task_index" in row]


@pytest.mark.slow
def test_a_resumed_run_shows_the_rows_done_before(tmp_path: Path) -> None:
    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
    track(tmp_path / "whole")
    with WandbTracking() as tracker:
        tracker.start(tmp_path / "resumed", RECORD)
    kept = ("task_index", "score/a", "score/b", "summary/stored_parameters")
    rows = [
        [{key: row.get(key) for key in kept} for row in histories(tmp_path / name)]
        for name in ("whole", "resumed")
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2
    averages = [row["summary/average_score"] for row in histories(tmp_path / "resumed")]
    assert averages == [0.5, 0.625]


def test_undefined_values_are_left_out(tmp_path: Path) -> None:
    track(tmp_path)
    history = [json.dumps(r) for r in records(tmp_path) if "history" in json.dumps(r).lower()]
    assert history
    assert not any("summary/forgetting" in line or "NaN" in line for line in history)


@pytest.mark.slow
def test_runs_are_separate_also_when_one_fails(tmp_path: Path) -> None:
    for name, fail in (("1", False), ("2", True), ("3", False)):
        (tmp_path / name).mkdir()
        if fail:
            with pytest.raises(RuntimeError):
                track(tmp_path / name, fail=True)
        else:
            track(tmp_path / name)
    exits = [records(tmp_path / n)[-1]["exit"].get("exit_code", 0) for n in "123"]
    assert exits == [0, 1, 0]
    assert len({next((tmp_path / n).glob("wandb/offline-run-*")).name for n in "123"}) == 3


@pytest.mark.parametrize("broken", ["init", "Table"])
def test_a_broken_wandb_is_switched_off_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("no server")

    monkeypatch.setattr(wandb, broken, fail)
    with caplog.at_level(logging.WARNING, logger="stream"):
        logging.getLogger("stream").propagate = True
        track(tmp_path)
    warnings = [r.getMessage() for r in caplog.records if "W&B" in r.getMessage()]
    assert warnings == ["W&B is switched off for this run: no server"]


@pytest.mark.slow
def test_an_unreachable_server_leaves_an_offline_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setattr(tracking, "INIT_TIMEOUT_S", 3)
    wandb.teardown()  # settings are read once a process
    try:
        logging.getLogger("stream").propagate = True
        track(tmp_path)
    finally:
        monkeypatch.undo()
        wandb.teardown()
    assert "wandb sync" in caplog.text
    assert caplog.text.count("W&B") == 1
    assert "score/a" in json.dumps(records(tmp_path))


def test_login_is_looked_for_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert not login_exists(SERVER)
    assert WandbTracking()._mode(SERVER) == "offline"
    (tmp_path / "netrc").write_text("machine wandb.example login user password secret\n")
    assert login_exists(SERVER)
    assert not login_exists("https://other.example")
    assert WandbTracking()._mode(SERVER) == "online"
    assert WandbTracking(mode="offline")._mode(SERVER) == "offline"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert WandbTracking(mode="online")._mode(SERVER) == "disabled"


def test_modes_are_checked() -> None:
    with pytest.raises(UserError, match="'offline'"):
        WandbTracking(mode="ofline")


def test_no_tracking_does_nothing(tmp_path: Path) -> None:
    with NoTracking() as tracker:
        tracker.start(tmp_path, RECORD)
        tracker.row(0, RECORD)
        tracker.finish(RECORD, [])
    assert not list(tmp_path.iterdir())
