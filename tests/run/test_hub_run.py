"""A whole run from the hub's cache: prepared once against a stand-in, then with sockets closed."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.hub_server import Hub, serve
from tests.run.program import ENVIRONMENT, ROOT, Started, run_plain

pytestmark = pytest.mark.slow

README = b"""---
configs:
- config_name: rte
  data_files:
  - {split: train, path: rte/train-*}
  - {split: validation, path: rte/validation-*}
---
"""
CLOSED = """
import socket, sys

def refuse(*_):
    raise AssertionError("a socket was opened")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from stream.cli.run import main

main(sys.argv[1:])
"""
STREAM = ["data=hub", "task=[rte]", "backbone=tiny"]


def part(start: int, rows: int) -> bytes:
    names = ["entailment", "not_entailment"]
    features = {
        "sentence1": {"dtype": "string", "_type": "Value"},
        "sentence2": {"dtype": "string", "_type": "Value"},
        "label": {"names": names, "_type": "ClassLabel"},
    }
    numbers = range(start, start + rows)
    columns = {
        "sentence1": [f"premise number {i}" for i in numbers],
        "sentence2": [f"hypothesis {i}" for i in numbers],
        "label": pa.array([i % 2 for i in numbers], pa.int64()),
    }
    stated = {"huggingface": json.dumps({"info": {"features": features}})}
    file = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(stated), file)
    return file.getvalue()


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    files = {
        "README.md": README,
        "rte/train-00000-of-00001.parquet": part(0, 80),
        "rte/validation-00000-of-00001.parquet": part(1000, 20),
    }
    hub.commit("nyu-mll/glue", "main", files)
    server = serve(hub)
    yield hub
    server.shutdown()
    server.server_close()


def test_prepare_once_then_run_with_sockets_closed(hub: Hub, tmp_path: Path) -> None:
    cache = [f"cache={tmp_path / 'cache'}"]
    home, hf = tmp_path / "home", tmp_path / "hf"
    online = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(hf), "HOME": str(home)}
    home.mkdir()
    prepared = subprocess.run(
        [sys.executable, "-m", "stream", "tasks", "prepare", *STREAM, *cache],
        cwd=tmp_path,
        env=ENVIRONMENT | online | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert prepared.returncode == 0, prepared.stderr
    assert "1 task, 100 rows, 100 of them encoded now" in prepared.stdout
    assert list(hf.rglob("*.parquet"))  # what is downloaded goes where HF_HOME says,
    assert list((tmp_path / "cache/hub").rglob("*.arrow"))  # what is made of it to the cache,
    assert not list(home.rglob("*"))  # and nothing elsewhere
    arguments = [*STREAM, *cache, "tracking=none", "training.min_steps=2", "hydra.run.dir=out"]
    (tmp_path / "closed.py").write_text(CLOSED)
    code, _, err = Started(tmp_path, "closed", *arguments, path=tmp_path).result()
    assert code == 0, err
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (found["status"], found["source"]) == ("complete", "hub")
    accounts = found["data"]["accounts"]["rte"]
    assert accounts["test"]["kept"] == 20  # GLUE's development set
    assert accounts["train"]["kept"] + accounts["validation"]["kept"] == 80
    (commit,) = hub.repositories["nyu-mll/glue"].commits
    assert accounts["test"]["provenance"]["commit"] == commit


def test_offline_and_without_cache_it_is_one_line(tmp_path: Path) -> None:
    code, _, err = run_plain(tmp_path, *STREAM, f"cache={tmp_path}")
    assert code == 2
    assert err.count("\n") == 1
    assert "data=files" in err
    assert "data=generated" in err
