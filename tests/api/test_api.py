"""The Python API: a run, its tables and its answers, without a trace in the process."""

import asyncio
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

import stream
from stream.errors import UserError
from tests.run.program import run

ROOT = Path(__file__).parent.parent.parent
SMOKE = {"experiment": "smoke", "task": ["cola", "stsb"]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> stream.Results:
    folder = tmp_path_factory.mktemp("api") / "new" / "run"
    return stream.run_stream(**SMOKE, folder=folder, quiet=True)


def globals_now() -> list[object]:
    """What a run could leave behind in this process."""
    log, root = logging.getLogger("stream"), logging.getLogger()
    return [
        GlobalHydra.instance().hydra,
        HydraConfig.instance().cfg,
        [*log.handlers, *root.handlers],
        log.propagate,
        signal.getsignal(signal.SIGINT),
        signal.getsignal(signal.SIGTERM),
        Path.cwd(),
        list(sys.argv),
        dict(os.environ),
    ]


def test_importing_it_is_light() -> None:
    code = "import sys, stream; print({'torch', 'pandas', 'numpy', 'hydra'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(stream.__version__)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0] == "set()"
    assert re.match(r"\d+", done.stdout.splitlines()[1])


def test_the_example_of_the_docstring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stream.__doc__ is not None
    blocks = inspect.cleandoc(stream.__doc__).split("\n\n")
    code = "\n\n".join(block for block in blocks if block.startswith("    "))
    assert code.count("stream.") == 1
    monkeypatch.chdir(tmp_path)
    exec(textwrap.dedent(code), {})
    shown = capsys.readouterr().out
    assert "run folder: runs/" in shown
    assert "after learning" in shown
    assert "label='" in shown
    (path,) = tmp_path.rglob("results.json")
    assert json.loads(path.read_text())["config"]["learner"]["size"] == 8


def test_tables_are_the_record(results: stream.Results) -> None:
    record = json.loads((results.folder / "results.json").read_text())
    assert results.record.status == "complete"
    scores = results.scores
    assert (scores.index.name, scores.columns.name) == ("after learning", "on task")
    assert scores.loc["stsb", "cola"] == record["matrix"][1][0]
    assert scores.isna().to_numpy().tolist() == [[False, True], [False, False]]
    assert results.metrics["average_score"] == scores.loc["stsb"].mean()
    cells = results.cells.set_index(["after", "on"])
    assert len(cells) == 3
    assert cells.loc[("stsb", "cola"), "digest"] == record["cells"][1][0]["digest"]
    assert set(cells["state"]) == {"measured"}
    assert "cola, stsb" in repr(results)


@pytest.mark.slow
def test_it_is_the_run_of_the_command_line(results: stream.Results, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "task=[cola,stsb]", f"hydra.run.dir={tmp_path / 'run'}")
    assert (code, err) == (0, "")
    assert stream.load(tmp_path / "run").record.fingerprints == results.record.fingerprints


def test_it_serves_and_verifies(results: stream.Results) -> None:
    again = stream.load(results.folder)
    (pair,) = again.predict("stsb", [("a text", "another")])
    assert pair.score is not None
    path = results.folder / "results.json"
    assert stream.load(path).folder == results.folder
    assert again.verify()["ok"].all()
    before = path.read_text()
    try:
        path.write_text(re.sub(r'("digest":\s*")\w{4}', r"\g<1>0000", before, count=1))
        assert not stream.load(results.folder).verify()["ok"].all()
    finally:
        path.write_text(before)


def test_nothing_is_left_behind_and_twice_is_the_same(
    results: stream.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def notebook() -> stream.Results:
        return stream.run_stream(**SMOKE, folder=tmp_path / "again", quiet=True)

    with initialize_config_dir(str(tmp_path), version_base="1.3"):  # a Hydra of the caller's own
        before = globals_now()
        again = asyncio.run(notebook())
        with pytest.raises(UserError):
            stream.run_stream(learner="adaptor")
        assert globals_now() == before
    assert capsys.readouterr().out == ""
    assert again.record.fingerprints == results.record.fingerprints


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "adaptor"}, "unknown learner 'adaptor'. Did you mean 'adapter'"),
        ({"task": ["sst3"]}, "Did you mean 'sst2'"),
        ({"sede": 1}, "unknown setting 'sede'"),
        ({"learner": {"size": 8}}, "overrides="),
        ({"overrides": ["learner.size=0"]}, "at least 1"),
        ({"overrides": ["seed=1,2"]}, "seed"),
        ({"experiment": "fig4_sizes"}, "sweeps learner.size, seed: give one value for each"),
        ({"seed": 1, "overrides": ["seed=2"]}, "seed is given twice (seed=1 and seed=2)"),
        ({"overrides": ["limits={eval: 3}", "limits.eval=4"]}, "limits.eval is given twice"),
        ({"overrides": ["hydra.run.dir=there"]}, "folder and hydra.run.dir name"),
        ({"overrides": "seed=2"}, "overrides must be a list of settings: ['seed=2']"),
        ({"seed": np.int64(-3)}, "seed must be at least 0, got -3"),
        ({"resume": "runs/x"}, "resume is for the command line"),
        ({"sweep": "x"}, "sweep is for the command line"),
        ({"device": "cuda:99"}, "device=cuda:99"),
    ],
)
def test_mistakes_are_user_errors_and_nothing_is_written(
    settings: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        stream.run_stream(**SMOKE | settings, folder=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_used_folder_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(UserError, match="not empty: it holds mine"):
        stream.run_stream(**SMOKE, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(UserError, match="no run at"):
        stream.load(tmp_path)
