"""Safe by construction: no secret leaves the environment, no name leaves the run folder."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

from stream.cli.predict import as_text
from stream.errors import UserError
from stream.run.checkpoint import CheckpointStore
from stream.run.predict import Prediction
from tests.run.learned import refused
from tests.run.program import ROOT, TINY, Started

SECRET = "sekret0123456789sekret0123456789sekret01"
HOSTILE = ("../out", "/tmp/out", "a/b", "..", ".hidden", "a b", "\u202eevil", "$(id)", "")


@pytest.mark.slow
def test_no_secret_is_written(tmp_path: Path) -> None:
    secrets = {"WANDB_API_KEY": SECRET, "HF_TOKEN": f"hf_{SECRET}", "OTHER_PASSWORD": SECRET}
    given = ("task=[cola]", "tracking=wandb", "hydra.run.dir=run")
    started = Started(tmp_path, "run_stream", *TINY, *given, environment=secrets)
    code, out, err = started.result()
    assert (code, err) == (0, "")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert any(b"adapter" in path.read_bytes() for path in files)  # the search finds something
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in out


@pytest.mark.parametrize("name", HOSTILE)
def test_a_task_name_cannot_leave_its_place(tmp_path: Path, name: str) -> None:
    (tmp_path / "my/task").mkdir(parents=True)
    (tmp_path / "my/task/mine.yaml").write_text(
        json.dumps({name: {"title": "x", "kind": "single", "labels": ["a", "b"], "source": "x"}})
    )
    before = sorted(tmp_path.rglob("*"))
    refused(tmp_path, *TINY, "--config-dir", "my", "task=[mine]", "data=files", "data.root=.")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", HOSTILE[:-1])
def test_a_sweep_name_cannot_leave_its_place(tmp_path: Path, name: str) -> None:
    refused(tmp_path, *TINY, "-m", f"sweep='{name}'", "task=[cola]")
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.write({"task/a": {}}, {"number": 1})
    (path,) = tmp_path.glob("checkpoint/manifest-*.json")
    text = re.sub(r'"[0-9a-f]{64}"', json.dumps("../../" + "x" * 58), path.read_text())
    line = text.splitlines()[0]
    path.write_text(f"{line}\n{sha256(line.encode()).hexdigest()}\n")
    with pytest.raises(UserError, match="names files that are no digests"):
        store.latest()


def test_labels_with_terminal_codes_are_shownas_text() -> None:
    shown = as_text(Prediction("\x1b[2Jgood\u202e\n", {}, None))
    assert shown.isprintable()
    assert "good" in shown
    assert "\x1b" not in shown


def test_nothing_reads_the_clock_of_the_wall() -> None:
    """Durations come from monotonic clocks, so a clock that is set back changes nothing."""
    paths = [*ROOT.glob("stream/**/*.py"), ROOT / "run_stream.py"]
    dates = ROOT / "stream/data/sources/hub_record.py"  # notes the day of a download
    for path in (path for path in paths if path != dates):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"\btime\.time\(|datetime\.|\bfrom time import\b", source), path
