"""After every row its line and the checkpoint are whole, and say the same as the record."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stream.config.run import CheckpointConfig
from stream.metrics import Evidence, correct_cells, summarize
from stream.record.run_record import RunRecord
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run import runner
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.settings import with_learner
from stream.training.engine import Eager
from tests.composed import compose_run
from tests.run.program import ROOT, TINY


class Reader(NoTracking):
    """Reads what is on disk after every row."""

    def start(self, folder: Path, record: RunRecord) -> None:
        """Note the folder."""
        self.folder, self.rows = folder, 0
        assert RunRecord.read(folder) == record

    def row(self, index: int, record: RunRecord) -> None:
        """Compare what the files say with the record; the row is the only thing that was added."""
        written = (self.folder / "results.json").read_bytes()
        self.opening = self.opening if index else written
        assert written == self.opening
        assert RunRecord.read(self.folder) == record
        saved = CheckpointManager(self.folder, CheckpointConfig()).latest()
        assert saved is not None
        assert (saved.record, saved.training) == (record, None)
        lines = (self.folder / "rows.jsonl").read_text().splitlines()
        newest = json.loads(lines[-1])
        assert [json.loads(line)["task"] for line in lines] == record.order[: index + 1]
        cells = record.cells[index][: index + 1]
        held = [on for start, stop in newest.get("reused", ()) for on in range(start, stop)]
        assert held == [on for on, cell in enumerate(cells) if cell and cell.state == "reused"]
        new = {
            n: asdict(c) for n, c in zip(record.order, cells, strict=False) if c.state != "reused"
        }
        assert newest["measured"] == new
        self.rows += 1

    def finish(self, record: RunRecord, figures: list[Path]) -> None:
        """Compare the whole record with what its cells say by themselves, in plain JSON."""
        del figures
        wanted = json.loads((self.folder / "results.json").read_text())
        rows = wanted["cells"]
        cells = [
            [rows[c][on] if isinstance(c, int) else c for on, c in enumerate(row)] for row in rows
        ]
        scores = [[None if c is None else c["score"] for c in row] for row in cells]
        assert scores == wanted["matrix"]
        examples = [rows[wanted["split"]] for rows in wanted["data"]["rows"].values()]
        texts = [[None if c is None else c["correct"] for c in row] for row in cells]
        evidence = Evidence(correct=correct_cells(texts, examples))
        metrics = summarize(np.array(scores, dtype=np.float64), evidence)
        for name in ("nfr", "nfi", "nfr_step", "nfi_step", "average_score", "forgetting"):
            assert metrics[name] == wanted["metrics"][name], name
        assert wanted["status"] == "complete"
        assert RunRecord.read(self.folder) == record


@pytest.mark.parametrize("settings", [["evaluation.reuse=on"], ["learner=finetune"]])
def test_both_files_are_whole_after_every_row(
    tmp_path: Path, settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Eager, "refused", "out of memory")  # as where a graph could not be captured
    given = [*TINY, "task=[cola,stsb,mrpc]", "tracking=none", *settings]
    config = with_learner(compose_run(ROOT / "conf", given)[0])
    reader = Reader()
    with Display(Console(quiet=True), tmp_path) as display:
        runner.run_stream(config, tmp_path, tracker=reader, display=display)
    assert reader.rows == 3
    record = RunRecord.read(tmp_path)
    assert record.eager == dict.fromkeys(record.order, "out of memory")
