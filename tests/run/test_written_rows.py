"""After every row results.json and the checkpoint are whole, and say the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stream.config.compose import compose_run
from stream.metrics import Evidence, correct_cells, summarize
from stream.record.run_record import RunRecord
from stream.report.progress import Display
from stream.report.tracking import NoTracking
from stream.run import runner
from stream.run.checkpoint import CheckpointStore
from stream.run.settings import with_learner
from tests.run.program import ROOT, TINY


class Reader(NoTracking):
    """Reads what is on disk after every row."""

    def start(self, folder: Path, record: RunRecord) -> None:
        """Note the folder."""
        del record
        self.folder, self.rows = folder, 0

    def row(self, index: int, record: RunRecord) -> None:
        """Compare both files with the record, and the metrics with those of a fresh decoding."""
        assert RunRecord.read(self.folder) == record
        wanted = json.loads((self.folder / "results.json").read_text())
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
        texts = [[None if c is None else c["correct"] for c in row] for row in wanted["cells"]]
        metrics = summarize(matrix, Evidence(correct=correct_cells(texts, examples)))
        for name in ("nfr", "nfi", "nfr_step", "nfi_step", "average_score", "forgetting"):
            assert metrics[name] == wanted["metrics"][name], name
        self.rows += 1


@pytest.mark.parametrize("settings", [["evaluation.reuse=on"], ["learner=finetune"]])
def test_both_files_are_whole_after_every_row(tmp_path: Path, settings: list[str]) -> None:
    given = [*TINY, "task=[cola,stsb,mrpc]", "tracking=none", *settings]
    config = with_learner(compose_run(ROOT / "conf", given)[0])
    reader = Reader()
    with Display(Console(quiet=True), tmp_path) as display:
        runner.run_stream(config, tmp_path, tracker=reader, display=display)
    assert reader.rows == 3
