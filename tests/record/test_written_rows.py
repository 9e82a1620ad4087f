"""Rows that are done are made into JSON once: what is written is what it would be without."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from stream.atomic_io import json_text, list_text, object_text, write_json
from stream.config.compose import compose_run
from stream.metrics import correct_cells, summarize
from stream.record.matrix import Cell, ScoreMatrix
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run import checkpoint, runner
from stream.run.checkpoint import CheckpointStore
from tests.run.program import ROOT, TINY

VALUES = {"a": [1, 2.5, None, "ü\n\"'"], "b": {}, "c": {"x": [True, -0.0, 1e-17]}, "d": []}


def cell(after: int, on: int) -> Cell:
    return Cell((after + on / 7) / 10, f"{after}-{on}", "measured", 0.1 * on, correct=None)


def text_of(pieces: tuple[bytes, ...]) -> str:
    return b"".join(pieces).decode()


def test_text_put_together_is_the_text_of_the_whole(tmp_path: Path) -> None:
    ready = {key: json_text(value) for key, value in VALUES.items()}
    assert text_of(object_text(ready)) == json.dumps(VALUES)
    assert text_of(list_text([ready["a"], 3, ready["d"]])) == json.dumps([VALUES["a"], 3, []])
    assert text_of(list_text([])) == "[]"
    for name, values in (("ready", ready), ("plain", VALUES)):
        write_json(tmp_path / name, values)
    assert (tmp_path / "ready").read_bytes() == (tmp_path / "plain").read_bytes()
    assert json.loads((tmp_path / "ready").read_text()) == VALUES
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text([math.nan])


def test_a_matrix_as_json_follows_every_cell() -> None:
    """Against the cells themselves, after each one: no row that was made before is stale."""
    matrix = ScoreMatrix(["a", "b", "c"])
    for after in range(3):
        for on in range(3):
            matrix.record(after, on, cell(after, on))
            wanted = [[None if c is None else asdict(c) for c in row] for row in matrix.cells]
            scores = [[None if c is None else c.score for c in row] for row in matrix.cells]
            assert matrix.as_json() == wanted
            assert matrix.scores_as_json() == scores
            assert [json.loads(text_of(text)) for text in matrix.texts()] == [wanted, scores]
            found = matrix.scores().tolist()
            assert [[None if math.isnan(s) else s for s in row] for row in found] == scores
            assert matrix.last("abc"[on]) == cell(after, on)
    again = ScoreMatrix.from_json(matrix.order, matrix.as_json())
    assert (again.cells, again.as_json()) == (matrix.cells, matrix.as_json())
    again.scores()[:] = 0  # a copy
    assert again.scores().tolist() == matrix.scores().tolist()


def test_what_was_never_evaluated_has_no_last_cell() -> None:
    with pytest.raises(ValueError, match="never evaluated"):
        ScoreMatrix(["a"]).last("a")


def test_a_manifest_of_ready_text_is_read_as_its_values(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    state = {"results": object_text({k: json_text(v) for k, v in VALUES.items()}), "training": None}
    digests = store.write({"shared": {"w": torch.ones(2)}}, state)
    found = store.latest()
    assert found is not None
    assert (found.state, found.groups) == ({"results": VALUES, "training": None}, digests)


def test_the_last_manifest_is_hashed_and_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its groups are known; one that was changed since is found, and not counted as whole."""
    store = CheckpointStore(tmp_path)
    store.write({"shared": {"w": torch.zeros(1)}}, {"number": 0})
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.json, "loads", lambda text: pytest.fail("parsed"))
        store.write({"shared": {"w": torch.ones(1)}}, {"number": 1})
    path = tmp_path / "checkpoint/manifest-2.json"
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 7'))
    store.write({"shared": {"w": torch.full((1,), 2.0)}}, {"number": 2})
    assert store.generations() == [1, 3]
    assert torch.equal(store.load(store.read(1), "shared")["w"], torch.zeros(1))
    (tmp_path / "checkpoint/manifest-3.json").write_bytes(b"{")
    found = store.latest()
    assert found is not None
    assert found.state == {"number": 0}


def test_another_writer_s_manifest_is_parsed(tmp_path: Path) -> None:
    CheckpointStore(tmp_path).write({"shared": {"w": torch.zeros(1)}}, {"number": 0})
    store = CheckpointStore(tmp_path)  # as after an interruption
    store.write({"shared": {"w": torch.ones(1)}}, {"number": 1})
    assert [store.read(number).state["number"] for number in store.generations()] == [0, 1]


class Reader(NoTracking):
    """Reads what is on disk after every row."""

    def start(self, folder: Path, results: Mapping[str, Any]) -> None:
        """Note the folder."""
        del results
        self.folder, self.rows = folder, 0

    def row(self, index: int, results: Mapping[str, Any]) -> None:
        """Compare both files with the values, and the metrics with those of a fresh decoding."""
        wanted = json.loads(json.dumps(results))
        text = (self.folder / "results.json").read_text()
        assert json.loads(text) == wanted
        assert list(json.loads(text)) == list(results)
        found = CheckpointStore(self.folder).latest()
        assert found is not None
        assert found.state == {"results": wanted, "training": None}
        assert [sum(c is not None for c in row) for row in wanted["cells"][: index + 1]] == [
            *range(1, index + 2)
        ]
        scores = [[None if c is None else c["score"] for c in row] for row in wanted["cells"]]
        assert scores == wanted["matrix"]
        examples = [rows[wanted["split"]] for rows in wanted["data"]["rows"].values()]
        matrix = np.array(scores, dtype=np.float64)
        metrics = summarize(matrix, correct=correct_cells(wanted["cells"], examples))
        for name in ("nfr", "nfi", "nfr_step", "nfi_step", "average_score", "forgetting"):
            assert metrics[name] == wanted["metrics"][name], name
        self.rows += 1


@pytest.mark.parametrize("settings", [["evaluation.reuse=on"], ["learner=finetune"]])
def test_both_files_are_whole_after_every_row(tmp_path: Path, settings: list[str]) -> None:
    given = [*TINY, "task=[cola,stsb,mrpc]", "tracking=none", *settings]
    config, _ = compose_run(ROOT / "conf", given)
    reader = Reader()
    with Display(Console(quiet=True), tmp_path) as display:
        runner.run_stream(config, tmp_path, tracker=reader, display=display)
    assert reader.rows == 3
