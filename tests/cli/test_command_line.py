"""The program as a person starts it, in a folder of its own, on a tiny encoder."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream import metrics
from tests.run.learned import learned, refused
from tests.run.program import TINY, run, start

pytestmark = pytest.mark.slow


def results(folder: Path) -> dict[str, Any]:
    (path,) = folder.rglob("results.json")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("finished")
    code, out, err = run(folder, "tracking=wandb")
    assert (code, err) == (0, "")
    return folder, out


def test_results_hold_the_contract(finished: tuple[Path, str]) -> None:
    found = results(finished[0])
    assert found["schema"] == 2
    assert found["status"] == "complete"
    assert (found["learner"], found["source"], found["seed"]) == ("adapter", "generated", 0)
    assert found["order"] == ["cola", "stsb", "crowdflower_airline"]
    for i, row in enumerate(found["cells"]):
        for j, cell in enumerate(row):
            assert (cell is None) == (j > i)
            assert cell is None or cell["state"] == "measured"
            assert cell is None or found["matrix"][i][j] == cell["score"]
    assert found["memory"] == {"promised": True, "tasks_checked": 2, "tasks_identical": 2}
    assert found["metrics"]["forgetting"] == 0.0
    matrix = np.array(found["matrix"], dtype=float)
    assert found["metrics"]["average_score"] == metrics.average_score(matrix)
    assert len(found["baseline"]) == 3
    assert len(found["ledger"]["tasks"]) == 3
    assert found["labels"]["crowdflower_airline"] == ["negative", "neutral", "positive"]
    assert found["config"]["learner"]["size"] == 64
    assert {"torch", "transformers", "python"} <= found["versions"].keys()
    assert found["timing"]["train_examples"] == sum(found["timing"]["by_task"]["train_examples"])


def test_a_person_sees_rows_a_table_and_the_proof(finished: tuple[Path, str]) -> None:
    folder, out = finished
    assert "GENERATED data" in out
    assert "after  3 CF airline" in out
    assert "perfect memory: 2 of 2 earlier tasks bit-identical" in out
    assert "x the encoder" in out
    log = next(folder.rglob("run.log")).read_text()
    assert "perfect memory: 2 of 2" in log
    names = {path.name for path in next(folder.rglob("results.json")).parent.glob("figures/*")}
    drawn = ("matrix", "scores", "forgetting", "parameters")
    assert {f"{name}.{kind}" for name in drawn for kind in ("png", "svg")} == names


def test_wandb_files_lie_in_the_run_folder(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    (run_folder,) = {path.parent for path in folder.rglob("results.json")}
    assert list(run_folder.glob("wandb/offline-run-*/run-*.wandb"))
    assert [path.name for path in folder.iterdir()] == ["runs"]


def test_the_same_seed_gives_the_same_record(finished: tuple[Path, str], tmp_path: Path) -> None:
    """In another process."""
    learned(tmp_path / "run")
    first, again = results(finished[0]), results(tmp_path)
    assert first["fingerprints"] == again["fingerprints"]
    assert first["losses"] == again["losses"]
    digests = [[[c and c["digest"] for c in row] for row in r["cells"]] for r in (first, again)]
    assert digests[0] == digests[1]


def test_another_order_gives_adapters_the_same_digests(
    finished: tuple[Path, str], tmp_path: Path
) -> None:
    odd = f"hydra.run.dir={tmp_path}/o'brien ${{a}}, [1] = #\\"  # in a folder of any name
    code, _, _ = run(tmp_path, "order=reversed", odd)
    assert code == 0
    first, other = results(finished[0]), results(tmp_path)
    assert other["order"] == first["order"][::-1]
    last = [
        {name: cell["digest"] for name, cell in zip(r["order"], r["cells"][-1], strict=True)}
        for r in (first, other)
    ]
    assert last[0] == last[1]
    assert first["data"]["hash"] == other["data"]["hash"]


def test_a_mistake_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, "learner=adaptor")
    assert code == 2
    assert out == ""
    assert err.startswith("error: unknown learner 'adaptor'. Did you mean 'adapter'?")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_missing_data_is_one_line(tmp_path: Path) -> None:
    refused(tmp_path, *TINY, "data=files", "~data.train", "~data.validation", "~data.test")


def test_a_used_run_folder_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("kept")
    assert "not empty" in refused(tmp_path, *TINY, f"hydra.run.dir={tmp_path}")
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_text() == "kept"


def test_wrong_weights_are_refused(tmp_path: Path) -> None:
    told = refused(tmp_path, *TINY, "backbone=minilm", f"backbone.sha256={'0' * 64}")
    assert "not the weights that were asked for" in told


def test_divergence_keeps_the_rows_so_far(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "learner=finetune", "learner.lr=1e30")
    assert code == 1
    assert err.count("\n") == 1
    assert "while learning task 'cola' at step" in err
    assert "learning rate" in err
    assert results(tmp_path)["status"] == "partial"


def test_interrupt_keeps_the_rows_so_far(tmp_path: Path) -> None:
    process = start(tmp_path, "training.min_steps=100000", "task=[cola,stsb]", "tracking=wandb")
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("results.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("error: stopped by SIGINT; go on with: resume=")
    assert "Traceback" not in err
    found = results(tmp_path)
    assert found["status"] == "partial"
    assert found["matrix"][0][0] is None


def test_a_multirun_gives_each_learner_its_own_folder(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "-m", "learner=finetune,replay,frozen", "task=[cola,stsb]")
    assert (code, err) == (0, "")
    jobs = [path.parent for path in tmp_path.rglob("results.json")]
    found = {r["learner"]: (r, job) for job in jobs for r in [results(job)]}
    assert sorted(found) == ["finetune", "frozen", "replay"]
    assert len({record["data"]["hash"] for record, _ in found.values()}) == 1
    for learner, (record, job) in found.items():
        shown = (job / "run.log").read_text()
        assert record["memory"]["promised"] == (learner == "frozen")
        assert ("perfect memory" in shown) == (learner == "frozen")
        assert (record["ledger"]["tasks"][-1]["buffer_examples"] > 0) == (learner == "replay")


def test_a_sweep_into_used_folders_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "results.json").write_text("kept")
    code, out, _ = run(
        tmp_path,
        "-m",
        "seed=1",
        "task=[cola]",
        f"hydra.sweep.dir={tmp_path}",
        "hydra.sweep.subdir=used",
    )
    assert code == 1
    file = tmp_path / "used/results.json"
    assert f"used failed: {file} is no record of a run" in out
    assert (tmp_path / "used" / "results.json").read_text() == "kept"
    assert [p.name for p in (tmp_path / "used").iterdir()] == ["results.json"]
