"""The hub source, against a stand-in on loopback.

Its libraries read their settings at import, so that loads of other settings are processes of their
own; those of the same settings follow one another in one. All are copies of one interpreter, which
has imported what the libraries themselves need.
"""

import atexit
import io
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.source import HubSource
from stream.data.sources.hub import PARQUET_BRANCH, changes, read_hub
from stream.data.sources.hub_record import (
    within,
)
from stream.errors import UserError
from tests.data.hub_server import Hub, serve

pytestmark = pytest.mark.slow

SCRIPT = """
if asked["closed"]:
    def refuse(*_):
        raise AssertionError("a socket was opened")
    socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("stream").addHandler(handler)
start = time.monotonic()  # of the first load: what it imports is part of what a person waits for

from stream.errors import UserError
from stream.data.sources import hub as source_hub
from stream.config.source import HubSource
from stream.data.sources.hub import read_hub

assert "datasets" not in sys.modules
source_hub.STALL_S = asked["stall_s"]
answers = []
for source in asked["sources"]:
    answer = {"error": None}
    try:
        tables = read_hub(
            "cola", HubSource(**source), Path(asked["cache"]), offline=asked["offline"]
        )
    except UserError as error:
        answer["error"] = str(error)
    else:
        answer["rows"] = {name: table.table.to_pylist() for name, table in tables.items()}
        answer["where"] = {name: table.where for name, table in tables.items()}
        answer["lines"] = {name: table.lines.tolist() for name, table in tables.items()}
        answer["provenance"] = {name: table.provenance for name, table in tables.items()}
    answer["seconds"] = time.monotonic() - start
    answer["fetched"] = "datasets" in sys.modules
    answer["warnings"] = lines[:]
    lines.clear()
    answers.append(answer)
"""
COPIED = """
import json, logging, os, socket, sys, time, traceback
from pathlib import Path

import dill, fsspec, httpx, multiprocess, numpy, pandas, pyarrow.parquet, tqdm, yaml

script = compile(sys.argv[1], "a load", "exec")
assert not {"datasets", "huggingface_hub"} & set(sys.modules)
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        told = globals() | {"asked": request["asked"]}
        try:
            exec(script, told)
        except BaseException:
            told["answers"] = traceback.format_exc()
        partial = Path(request["answer"] + ".partial")
        partial.write_text(json.dumps(told["answers"]))
        partial.rename(request["answer"])
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
ROOT = Path(__file__).parents[2]
NUMBERS = itertools.count()
LABELS = ["unacceptable", "acceptable"]
COLA = {"id": "nyu-mll/glue", "config": "cola", "splits": {"train": "train", "test": "validation"}}
README = b"""---
configs:
- config_name: cola
  data_files:
  - {split: train, path: cola/train-*}
  - {split: validation, path: cola/validation-*}
  - {split: test, path: cola/test-*}
- config_name: sst2
  data_files:
  - {split: train, path: sst2/train-*}
---
"""


def parquet(texts: list[str], labels: list[int], names: list[str] = LABELS) -> bytes:
    features = {
        "sentence": {"dtype": "string", "_type": "Value"},
        "label": {"names": names, "_type": "ClassLabel"},
    }
    table = pa.table({"sentence": texts, "label": pa.array(labels, pa.int64())})
    stated = {"huggingface": json.dumps({"info": {"features": features}})}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(stated), file)
    return file.getvalue()


def glue(train: bytes) -> dict[str, bytes]:
    return {
        "README.md": README,
        "cola/train-00000-of-00001.parquet": train,
        "cola/validation-00000-of-00001.parquet": parquet(["Sam left."], [1]),
        "cola/test-00000-of-00001.parquet": parquet(["Who knows?", "Nobody."], [-1, -1]),
        "sst2/train-00000-of-00001.parquet": parquet(["fine"], [1]),
    }


TRAIN = parquet(["Him left.", "He left.", ""], [0, 1, 1])
TRAIN_ROWS = [
    {"sentence": "Him left.", "label": "unacceptable"},
    {"sentence": "He left.", "label": "acceptable"},
    {"sentence": "", "label": "acceptable"},
]


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    server = serve(hub)
    yield hub
    hub.end.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving() as hub:
        yield hub


@cache
def interpreter() -> subprocess.Popen[str]:
    """The interpreter whose copies load; it ends with this process."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    command = [sys.executable, "-c", COPIED, SCRIPT]
    environment = {**ours, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True)

    def end() -> None:
        assert started.stdin is not None
        started.stdin.close()
        started.wait()

    atexit.register(end)
    return started


class Loader:
    def __init__(self, url: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.url, self.folder, self.stall_s = url, folder, 30.0
        self.cache = folder / "cache"

    def __call__(self, source: dict, **settings: bool | str) -> dict:
        """Load in a new process; return what came of it."""
        return self.each([source], **settings)[0]

    def each(
        self,
        sources: list[dict],
        *,
        closed: bool = False,
        offline: bool = False,
        **environment: str,
    ) -> list[dict]:
        """Load one after another in a new process; return what came of each."""
        asked = {"sources": sources, "cache": str(self.cache), "closed": closed, "offline": offline}
        asked["stall_s"] = self.stall_s
        answer = self.folder / f"answer-{next(NUMBERS)}"
        settings = {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(self.folder / "home"),
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "NO_PROXY": "127.0.0.1",
        }
        request = {"asked": asked, "environment": {**settings, **environment}}
        request |= {"folder": str(self.folder), "answer": str(answer)}
        stdin = interpreter().stdin
        assert stdin is not None
        stdin.write(f"{json.dumps(request)}\n")
        stdin.flush()
        deadline = time.monotonic() + 60
        while not answer.exists():
            assert time.monotonic() < deadline, "no answer"
            time.sleep(0.01)
        found = json.loads(answer.read_text())
        assert isinstance(found, list), found
        return found


@pytest.fixture
def load(hub: Hub, tmp_path: Path) -> Loader:
    return Loader(hub.url, tmp_path)


HIDDEN = {**COLA, "splits": {"train": "train", "hidden": "test"}}
OTHER = {**COLA, "id": "other/glue"}
CROWD = {"id": "task/crowd", "config": "airline", "splits": {"train": "train"}}
BRANCH = {**CROWD, "revision": PARQUET_BRANCH}
NEWS = {"id": "SetFit/news", "splits": {"train": "train", "test": "test"}}
NEWS_ROWS = [{"text": "N/A", "label": 3, "label_text": "null"}, {"text": "b", "label": 0}]
LACKING = [
    ({"id": "nyu-mll/nothing"}, "no such data set"),
    ({"id": "closed/gated"}, "gated: accept its terms"),
    ({"revision": "v7"}, "no such revision"),
    ({"config": "colour"}, "colour"),
    ({"splits": {"test": "dev"}}, "its splits: train, validation, test"),
    ({"id": "broken/hub"}, "data=generated"),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What one process finds that loads everything that the same settings can load, in turn."""
    asked = {"hidden": HIDDEN, "other": OTHER, "script": CROWD, "branch": BRANCH, "news": NEWS}
    asked |= {said: {**COLA, **changed} for changed, said in LACKING}
    swapped = parquet(["Him left.", "He left.", ""], [1, 0, 0], LABELS[::-1])
    branch = {
        "airline/train/0000.parquet": parquet(["late"], [0], ["neutral", "positive"]),
        "airline/train/0001.parquet": parquet(["nice"], [1], ["neutral", "positive"]),
        "airline/train-not/0000.parquet": parquet(["no"], [1]),
        "emotion/train/0000.parquet": parquet(["no"], [1]),
    }
    news = "".join(json.dumps({"label_text": None, **row}) + "\n" for row in NEWS_ROWS).encode()
    with serving() as hub:
        for name in ("nyu-mll/glue", "closed/gated", "broken/hub"):
            hub.commit(name, "main", glue(TRAIN))
        hub.repositories["closed/gated"].refusal = (401, "GatedRepo")
        hub.repositories["broken/hub"].refusal = (500, "Broken")
        hub.commit("other/glue", "main", glue(swapped))
        hub.commit("task/crowd", "main", {"README.md": b"# x", "crowd.py": b"raise SystemExit"})
        commit = hub.commit("task/crowd", PARQUET_BRANCH, branch)
        hub.commit("SetFit/news", "main", {"train.jsonl": news, "test.jsonl": news})
        loader = Loader(hub.url, tmp_path_factory.mktemp("hub") / "loads")
        found = loader.each(list(asked.values()))
    return {**dict(zip(asked, found, strict=True)), "commit": {"branch": commit}}


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Loader, str, dict]]:
    """A loader whose cache has what was loaded once, the commit, and what came of it."""
    with serving() as hub:
        commit = hub.commit("nyu-mll/glue", "main", glue(TRAIN))
        load = Loader(hub.url, tmp_path_factory.mktemp("recorded") / "loads")
        decoy = load.folder / "nyu-mll" / "glue"  # `datasets` alone would read this folder
        decoy.mkdir(parents=True)
        (decoy / "train.csv").write_text("sentence,label\nwrong,0\n")
        yield load, commit, load(COLA)


def records(cache: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((cache / "records").glob("*"))]


def test_first_load_records_and_later_ones_need_no_network(
    recorded: tuple[Loader, str, dict],
) -> None:
    load, commit, first = recorded
    assert first["error"] is None
    assert first["rows"]["train"] == TRAIN_ROWS
    assert first["rows"]["test"] == [{"sentence": "Sam left.", "label": "acceptable"}]
    assert first["lines"] == {"train": [1, 2, 3], "test": [1]}
    assert first["where"]["test"] == f"hub:nyu-mll/glue/cola@{commit} split validation"
    [record] = records(load.cache)
    assert record["commit"] == commit
    assert first["provenance"]["train"] == {
        "id": "nyu-mll/glue",
        "config": "cola",
        "revision": "main",
        "commit": commit,
        "fingerprint": record["splits"]["train"]["sha256"],
    }

    for again in (
        load(COLA, closed=True),
        load(COLA, closed=True, offline=True),
        load(COLA, closed=True, HF_HUB_OFFLINE="1"),
    ):
        assert again["rows"] == first["rows"]
        assert again["provenance"] == first["provenance"]
        assert again["warnings"] == []
        assert not again["fetched"]  # `datasets` is not even imported
    assert records(load.cache) == [record]


def test_a_moved_commit_is_reported_and_the_recorded_one_kept(load: Loader, hub: Hub) -> None:
    old = hub.commit("nyu-mll/glue", "main", glue(TRAIN))
    first = load(COLA)
    new = hub.commit("nyu-mll/glue", "main", glue(parquet(["Other."], [0])))
    second = load(COLA)
    assert second["rows"] == first["rows"]
    [line] = second["warnings"]
    assert old[:12] in line
    assert new[:12] in line

    for path in load.cache.rglob("*.arrow"):  # the cache is lost, the record is not
        path.unlink()
    third = load(COLA)
    assert third["rows"] == first["rows"]
    assert third["provenance"]["train"]["commit"] == old
    lost = load({**COLA, "splits": {"train": "train"}}, offline=True)
    assert "data=generated" in lost["error"]


def test_labels_go_by_name_and_hidden_ones_are_null(answers: dict[str, dict]) -> None:
    one, other = answers["hidden"], answers["other"]
    assert [row["label"] for row in one["rows"]["hidden"]] == [None, None]  # -1 on the hub
    assert one["rows"]["train"] == other["rows"]["train"]
    prints = [loaded["provenance"]["train"]["fingerprint"] for loaded in (one, other)]
    assert prints[0] == prints[1]


def test_a_script_is_refused_and_its_parquet_branch_read(answers: dict[str, dict]) -> None:
    refused, loaded = answers["script"], answers["branch"]
    assert PARQUET_BRANCH in refused["error"]
    assert "script" in refused["error"]
    assert loaded["error"] is None
    assert loaded["rows"]["train"] == [
        {"sentence": "late", "label": "neutral"},
        {"sentence": "nice", "label": "positive"},
    ]
    assert loaded["provenance"]["train"]["commit"] == answers["commit"]["branch"]
    assert loaded["provenance"]["train"]["revision"] == PARQUET_BRANCH


def test_json_lines_are_read(answers: dict[str, dict]) -> None:
    loaded = answers["news"]
    assert loaded["rows"]["train"][0] == NEWS_ROWS[0]
    assert loaded["rows"]["test"][1]["label_text"] is None


def test_without_network_and_cache_one_line_within_15_seconds(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.create_server(("127.0.0.1", 0)) as silent,
        ExitStack() as waiting,
        ThreadPoolExecutor() as pool,
    ):
        for _ in range(3):  # a full queue: further connects get no answer at all
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        ports = {"full": full.getsockname()[1], "silent": silent.getsockname()[1], "refused": 1}
        loads = {
            name: pool.submit(Loader(f"http://127.0.0.1:{port}", tmp_path / name), COLA)
            for name, port in ports.items()
        }
        failed = {name: load.result() for name, load in loads.items()}
    for answer in failed.values():
        assert answer["seconds"] < 15
        assert "data=files" in answer["error"]
        assert "data=generated" in answer["error"]
        assert "\n" not in answer["error"]
        assert not answer["fetched"]
    assert failed["refused"]["seconds"] < failed["silent"]["seconds"]


def test_a_download_that_stalls_fails(hub: Hub, load: Loader) -> None:
    hub.commit("nyu-mll/glue", "main", glue(TRAIN))
    hub.stalled, load.stall_s = ".parquet", 2.0
    failed = load(COLA)
    assert "no answer for 2 s" in failed["error"]
    assert "data=files" in failed["error"]
    assert records(load.cache) == []


def test_progress_extends_patience() -> None:
    steps = iter(range(100))
    assert within(0.5, lambda: time.sleep(1.2), lambda: next(steps)) is None
    with pytest.raises(TimeoutError, match="no answer"):
        within(0.2, lambda: time.sleep(0.5))
    with pytest.raises(KeyError):
        within(5, lambda: {}["nothing"])


def test_a_silent_hub_does_not_stop_what_is_recorded(recorded: tuple[Loader, str, dict]) -> None:
    load, _, first = recorded
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "url", f"http://127.0.0.1:{silent.getsockname()[1]}")
        second = load(COLA)
    assert second["rows"] == first["rows"]
    assert second["seconds"] < 15


@pytest.mark.parametrize("said", [said for _, said in LACKING])
def test_what_the_hub_lacks_is_one_line(said: str, answers: dict[str, dict]) -> None:
    error = answers[said]["error"]
    assert said in error
    assert "\n" not in error
    assert "'cola'" in error


def test_no_id_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    source = HubSource(missing="the original is primary-plutchik-wheel-DFE.csv")
    with pytest.raises(UserError) as caught:
        read_hub("emotions", source, tmp_path)
    assert str(caught.value) == (
        "task 'emotions': no hub id is known (the original is primary-plutchik-wheel-DFE.csv); "
        "use data=files or data=generated"
    )


def test_offline_without_cache_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    source = HubSource(**COLA)
    with pytest.raises(UserError, match="data=files"):
        read_hub("cola", source, tmp_path, offline=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="data=generated"):
        read_hub("cola", source, tmp_path)
    assert changes("cola", source, tmp_path) == []
