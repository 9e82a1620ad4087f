"""W&B offline, read back with its own tool; and W&B broken, which must change nothing."""

import json
import logging
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream.errors import UserError
from stream.metrics.within_task import ProbePoint
from stream.record.matrix import Cell
from stream.record.run_record import ProbeRecord, RunRecord
from stream.report.tracking import NoTracking, WandbTracking, login_exists
from stream.report.wandb_view import (
    AXES,
    FORGETTING_COLUMNS,
    change_lines,
    config_values,
    forgetting_rows,
    group_name,
    points,
    run_name,
    tag_names,
)
from tests.record.made_record import made_record

SERVER = "https://wandb.example"


def made(num_done: int) -> RunRecord:
    """The record of two tasks after some of them."""
    config = {"seed": 3, "learner": {"lr": 1e-3}, "training": {"warmup": 0.5}, "task": {"a": {}}}
    record = made_record(2, config=config, seed=3)
    record.order, record.ledger.base_parameters = ["a", "b"], 10
    for after, (scores, stored) in enumerate([([0.5], 10), ([0.5, 0.75], 15)][:num_done]):
        for on, score in enumerate(scores):
            record.score_matrix.record(after, on, Cell(score, "digest", "measured", 0.1))
        cells = record.score_matrix.cells
        record.matrix = [[cell and cell.score for cell in row] for row in cells]
        record.ledger.add(record.order[after], 5, (stored, 4 * stored), (0, 0))
        record.timing.learned(1.5 + after, 64, 4)
        record.timing.evaluated(0.25, 20)
        record.losses[record.order[after]] = [0.7, 0.6, 0.5, 0.4 - 0.1 * after]
    record.metrics |= {"average_score": 0.625}
    record.probe = ProbeRecord(every=2, rows=4)
    for point in ([0, 2, [0.25]], [1, 2, [0.25, 0.5]])[:num_done]:
        record.probe.add(ProbePoint(*point), 0.1)
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


@cache
def records(folder: Path) -> list[dict[str, Any]]:
    """What W&B's public tool reads in the file of an offline run that has ended."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    command = [str(Path(sys.executable).parent / "wandb"), "leet", "inspect", "--json", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that ended."""
    folder = tmp_path_factory.mktemp("whole")
    track(folder)
    return folder


def test_an_offline_run_holds_rows_table_image_and_names(whole: Path) -> None:
    text = json.dumps(records(whole))
    for expected in ("score/a", "forgetting/a", "summary/stored_parameters", "train/loss"):
        assert expected in text
    assert "task_index" in text
    assert "adapter-s3" in text
    assert "custom/adapter/tiny/generated" in text
    assert "data:generated" in text
    assert list(whole.glob("wandb/offline-run-*/files/media/table/*.table.json"))
    assert list(whole.glob("wandb/offline-run-*/files/media/images/figures/*.png"))
    lines = list(whole.glob("wandb/offline-run-*/files/media/table/score of*.table.json"))
    rows = json.loads(lines[0].read_text())["data"]
    assert sorted(rows) == [[1, "a", 0.5], [2, "a", 0.5], [2, "b", 0.75]]
    (lost,) = whole.glob("wandb/offline-run-*/files/media/table/forgetting by*.table.json")
    assert json.loads(lost.read_text())["data"] == [
        ["adapter", 3, 1, "a", 0.5, 0.5, 0, "generated"]
    ]
    (curves,) = whole.glob("wandb/offline-run-*/files/media/table/forgetting curves*.table.json")
    assert sorted(json.loads(curves.read_text())["data"]) == [[1, "a", 0], [2, "a", 0], [2, "b", 0]]
    assert not (Path.cwd() / "wandb").exists()


def test_forgetting_is_shown_by_task_and_undefined_is_not() -> None:
    """By hand: best earlier 0.5, then 0.2; the task learned last has no row."""
    record = made(2)
    record.matrix = [[0.5, None], [0.2, 0.75]]
    (row,) = forgetting_rows(record)
    assert FORGETTING_COLUMNS[-2:] == ("forgetting", "data")
    assert row == ["adapter", 3, 1, "a", 0.5, 0.2, pytest.approx(0.3), "generated"]
    assert change_lines(record) == [[0.0, pytest.approx(-0.3)], [0.0]]
    record.matrix[1] = [None, None]
    assert forgetting_rows(record) == []
    assert change_lines(record) == [[0.0], []]


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
def test_a_resumed_run_shows_the_rows_done_before(whole: Path, tmp_path: Path) -> None:
    with WandbTracking() as tracker:
        tracker.start(tmp_path, RECORD)
    kept = ("task_index", "score/a", "score/b", "summary/stored_parameters")
    rows = [
        [{key: row.get(key) for key in kept} for row in histories(folder)]
        for folder in (whole, tmp_path)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2
    averages = [row["summary/average_score"] for row in histories(tmp_path)]
    assert averages == [0.5, 0.625]


def test_undefined_values_are_left_out() -> None:
    (*_, first), (*_, second) = points(RECORD, 0), points(RECORD, 1)
    assert "summary/forgetting" not in first  # of one task
    assert "score/b" not in first
    assert second["summary/forgetting"] == 0.0


@pytest.mark.slow
def test_runs_are_separate_also_when_one_fails(whole: Path, tmp_path: Path) -> None:
    folders = [whole, tmp_path / "fails", tmp_path / "later"]
    for folder in folders[1:]:
        folder.mkdir()
    with pytest.raises(RuntimeError):
        track(folders[1], fail=True)
    track(folders[2])
    assert [records(f)[-1]["exit"].get("exit_code", 0) for f in folders] == [0, 1, 0]
    assert len({next(f.glob("wandb/offline-run-*")).name for f in folders}) == 3


@pytest.mark.parametrize("broken", ["init", "Table"])
def test_a_broken_wandb_is_switched_off_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("no server")

    monkeypatch.setattr(f"wandb.{broken}", fail)
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
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "3")
    import wandb

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


@pytest.mark.parametrize(
    ("mode", "variables", "expected"),
    [
        ("auto", {"WANDB_MODE": "disabled"}, "disabled"),
        ("auto", {"WANDB_MODE": "dryrun"}, "offline"),
        ("auto", {"WANDB_MODE": "online", "WANDB_DISABLED": "true"}, "disabled"),
        ("auto", {"WANDB_MODE": "offline", "WANDB_DISABLED": "false"}, "offline"),
        ("online", {"WANDB_MODE": "offline"}, "online"),  # what is set here goes first
        ("offline", {"WANDB_MODE": "online", "WANDB_DISABLED": "true"}, "offline"),
    ],
)
def test_a_mode_that_is_set_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, mode: str, variables: dict[str, str], expected: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert WandbTracking(mode=mode)._mode(SERVER) == expected


class Opened:
    """Stands in for an open W&B run of a server that has some rows."""

    def __init__(self, **summary: Any):
        self.summary, self.resumed, self.logged = summary, bool(summary), []

    def define_metric(self, name: str, **options: Any) -> None: ...

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def finish(self, exit_code: int) -> None: ...


def opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tracker: WandbTracking, **summary: Any
) -> tuple[dict[str, Any], Opened]:
    """What W&B is asked for by a run with two rows, and the run that was opened."""
    asked: dict[str, Any] = {}
    run = Opened(**summary)

    def init(**arguments: Any) -> Opened:
        asked.update(arguments)
        return run

    monkeypatch.setattr("wandb.init", init)
    with tracker:
        tracker.start(folder, RECORD)
    return asked, run


VARIABLES = {
    "WANDB_PROJECT": "p",
    "WANDB_NAME": "n",
    "WANDB_RUN_GROUP": "g",
    "WANDB_JOB_TYPE": "j",
    "WANDB_RUN_ID": "i",
    "WANDB_NOTES": "t",
    "WANDB_ENTITY": "e",
}


def test_the_variables_of_wandb_count_unless_a_setting_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WANDB_TAGS", "one, two")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
    asked, _ = opened(tmp_path, monkeypatch, WandbTracking())
    names = ("project", "name", "group", "job_type", "notes", "id", "dir")
    assert [asked[name] for name in names] == [*"pngjti", str(tmp_path / "elsewhere")]
    assert asked["tags"][-2:] == ["one", "two"]
    assert (tmp_path / "elsewhere").is_dir()
    assert asked["entity"] is None  # W&B reads that variable itself
    said = WandbTracking(
        project="P", run_name="N", group="G", job_type="J", notes="T", entity="E", tags=["three"]
    )
    asked, _ = opened(tmp_path, monkeypatch, said)
    assert [asked[name] for name in (*names[:5], "entity")] == [*"PNGJTE"]
    assert asked["tags"][-1] == "three"


def test_without_settings_and_variables_a_run_is_quiet_and_says_what_its_charts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_SILENT")
    asked, _ = opened(tmp_path, monkeypatch, WandbTracking())
    assert (asked["project"], asked["job_type"]) == ("task-stream", "stream")
    assert asked["settings"].silent
    assert asked["settings"].console == "off"
    shown = {key.partition("/")[0] for key in AXES}
    assert {name for name in shown if f"`{name}/" in asked["notes"]} == shown
    for name, value in {"SILENT": "false", "CONSOLE": "wrap", "INIT_TIMEOUT": "7"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    asked, _ = opened(tmp_path, monkeypatch, WandbTracking())
    given = asked["settings"].model_dump(exclude_unset=True)
    assert not {"silent", "console", "init_timeout"} & given.keys()  # W&B reads them itself


@pytest.mark.parametrize(
    ("environment", "settings", "said"),
    [
        ({"MODE": "ofline"}, {}, r"WANDB_MODE .*'ofline'.*'offline'.*online, run"),
        ({"DISABLED": "maybe"}, {}, "WANDB_DISABLED .*'maybe'.* Valid: true, 1"),
        ({"RESUME": "odd"}, {}, "WANDB_RESUME=odd: .*'allow', 'must', 'never' or 'auto'"),
        ({"CONSOLE": "odd"}, {}, "WANDB_CONSOLE=odd: .*'off'"),
        ({"INIT_TIMEOUT": "x"}, {}, "WANDB_INIT_TIMEOUT=x: .*number"),
        ({"BASE_URL": "nonsense"}, {}, "WANDB_BASE_URL=nonsense: .*URL"),
        ({"SILENT": "maybe"}, {}, "WANDB_SILENT=maybe: .*boolean"),
        ({"RUN_ID": "a/b"}, {}, "WANDB_RUN_ID=a/b: .*cannot contain"),
        ({"PROJECT": "a/b"}, {}, "WANDB_PROJECT=a/b: .*'/'"),
        ({"TAGS": "x" * 65}, {}, "WANDB_TAGS=x+: .*64 characters"),
        ({"DIR": "/proc/self/status/x"}, {}, "WANDB_DIR .*nothing can be written there"),
        ({}, {"project": "a#b"}, "tracking.project=a#b: .*'#'"),
        ({"PROJECT": "fine"}, {"project": "a#b"}, "tracking.project=a#b"),
        ({}, {"tags": ["fine", "x" * 65]}, "tracking.tags=fine,x+: .*64 characters"),
    ],
)
def test_what_wandb_does_not_take_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    settings: dict[str, Any],
    said: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    with pytest.raises(UserError, match=said) as caught, WandbTracking(**settings):
        pass
    assert "\n" not in str(caught.value)


def test_a_folder_has_one_id_and_folders_have_different_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("first", "second", "first")]
    ids = []
    for folder in folders:
        folder.mkdir(exist_ok=True)
        ids.append(opened(folder, monkeypatch, WandbTracking())[0]["id"])
    assert ids[0] == ids[2] != ids[1]


def test_only_a_folder_that_goes_on_adds_to_a_run_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W&B's own WANDB_RUN_ID, with which two folders could be one run, begins that run anew."""
    monkeypatch.setenv("WANDB_RUN_ID", "x")
    asked = [opened(tmp_path, monkeypatch, WandbTracking(mode="online"))[0] for _ in range(2)]
    assert [(a["id"], a["resume"]) for a in asked] == [("x", None), ("x", "allow")]
    (tmp_path / "other").mkdir()
    assert (
        opened(tmp_path / "other", monkeypatch, WandbTracking(mode="online"))[0]["resume"] is None
    )
    monkeypatch.setenv("WANDB_RESUME", "must")
    assert opened(tmp_path, monkeypatch, WandbTracking(mode="online"))[0]["resume"] == "must"


def test_a_run_that_goes_on_sends_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = opened(tmp_path, monkeypatch, WandbTracking(), task_index=1)
    assert [row["task_index"] for row in run.logged if "task_index" in row] == [2]
    assert min(row["train/step"] for row in run.logged if "train/step" in row) > 4


def test_what_is_shown_of_a_task() -> None:
    *within, row = points(RECORD, 1)
    assert row == {
        "task_index": 2,
        "score/a": 0.5,
        "score/b": 0.75,
        "forgetting/a": 0.0,
        "summary/average_score": 0.625,
        "summary/learning_score": 0.625,
        "summary/forgetting": 0.0,
        "summary/trained_parameters": 5,
        "summary/stored_parameters": 15,
        "summary/total_multiple": 1.5,
        "summary/learning_seconds": 2.5,
        "summary/scoring_seconds": 0.25,
    }
    losses = [point for point in within if "train/loss" in point]
    # Four steps, of which two warm up: the rates are 1/3, 2/3, 1 and 1/2 of the peak.
    assert [point["train/step"] for point in losses] == [5, 6, 7, 8]
    assert [point["train/loss"] for point in losses] == [0.7, 0.6, 0.5, pytest.approx(0.3)]
    rates = [1e-3 / 3, 2e-3 / 3, 1e-3, 0.5e-3]
    assert [point["train/lr"] for point in losses] == pytest.approx(rates)
    (probed,) = [point for point in within if "probe/a" in point]
    assert probed == {"train/step": 6, "probe/a": 0.25, "probe/b": 0.5}


def test_many_losses_are_shown_as_means_of_stretches() -> None:
    losses = [float(number) for number in range(250)]
    record = msgspec.structs.replace(RECORD, losses={"a": losses, "b": []})
    shown = [point for point in points(record, 0) if "train/loss" in point]
    assert [point["train/loss"] for point in shown][:2] == [1.0, 4.0]  # means of three
    assert shown[-1]["train/loss"] == 249.0
    assert len(shown) == 84


def test_settings_can_be_filtered_by_the_learner_and_hold_no_task_in_full() -> None:
    values = config_values(RECORD)
    assert values["learner"] == {"name": "adapter", "lr": 1e-3}
    assert values["method"] == "adapter"
    assert values["tasks"] == ["a", "b"]
    assert "task" not in values
    assert all(
        len(tag) <= 64 for tag in tag_names(msgspec.structs.replace(RECORD, stream="s" * 99))
    )


def test_jobs_of_a_sweep_have_names_of_their_own() -> None:
    def name(*overrides: str) -> str:
        return run_name(msgspec.structs.replace(RECORD, overrides=list(overrides)))

    assert name() == "adapter-s3"
    assert name("learner=adapter", "seed=3", "tracking=wandb") == "adapter-s3"
    assert name("learner=adapter_norm", "seed=3") == "adapter_norm-s3"
    assert name("learner.size=8", "+training.epochs=2") == "adapter-s3 size=8 training.epochs=2"
    assert len(name("task=[" + "a," * 200 + "]")) <= 128


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("AuthenticationError", "takes no such API key or setting"),
        ("CommError", "does not answer"),
    ],
)
def test_a_refused_key_and_a_silent_server_are_told_apart(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: str,
    said: str,
) -> None:
    import wandb

    modes, raised = [], getattr(wandb.errors, error)("a reason")

    def init(**arguments: Any) -> Opened:
        modes.append(arguments["mode"])
        if arguments["mode"] == "online":
            raise raised
        return Opened()

    monkeypatch.setattr("wandb.init", init)
    logging.getLogger("stream").propagate = True
    with caplog.at_level(logging.WARNING, logger="stream"), WandbTracking(mode="online") as tracker:
        tracker.start(tmp_path, RECORD)
    assert modes == ["online", "offline"]
    assert f"W&B {said} ({raised}); its files stay here: wandb sync" in caplog.text


def test_modes_are_checked() -> None:
    with pytest.raises(UserError, match="'offline'"):
        WandbTracking(mode="ofline")


def test_no_tracking_does_nothing(tmp_path: Path) -> None:
    with NoTracking() as tracker:
        tracker.start(tmp_path, RECORD)
        tracker.row(0, RECORD)
        tracker.finish(RECORD, [])
    assert not list(tmp_path.iterdir())
