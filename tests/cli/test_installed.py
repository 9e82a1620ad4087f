"""What ``pip install .`` gives: the command, its YAML files and its data, away from the clone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = ("stream", "analysis", "hydra_plugins", "conf", "pyproject.toml", "README.md", "LICENSE")
JOBLIB = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
ELSEWHERE = JOBLIB if find_spec("hydra_plugins.hydra_joblib_launcher") else []
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("setuptools") is None or find_spec("pip") is None,
        reason="no pip and setuptools here to build with",
    ),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built packages, and nothing else of the clone."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=compiled)
        else:
            shutil.copy(ROOT / name, source)
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--no-compile")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *offline)
    subprocess.run([*pip, "--target", str(target), str(source)], check=True)
    return target


@pytest.fixture
def call(installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Call the installed command in an empty folder; return its output.

    It ends with ``code``, and without a line on the error output.
    """
    environment = os.environ | {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}

    def called(*arguments: str, text: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [str(installed / "bin/task-stream"), *arguments],
            cwd=tmp_path,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, "")
        return done.stdout

    return called


def test_the_yaml_files_lie_in_the_package_and_nothing_lies_beside_it(installed: Path) -> None:
    there = {str(p.relative_to(installed / "stream")) for p in installed.rglob("*.yaml")}
    families = {f"models/families/{p.name}" for p in ROOT.glob("stream/models/families/*.yaml")}
    assert len(families) > 15
    settings = {str(path.relative_to(ROOT)) for path in ROOT.glob("conf/**/*.yaml")}
    assert there == settings | families
    assert {path.name for path in (ROOT / "analysis/report/page").iterdir()} == {
        path.name for path in (installed / "analysis/report/page").iterdir()
    }
    modules = {str(p.relative_to(ROOT)) for n in SOURCES[:3] for p in ROOT.glob(f"{n}/**/*.py")}
    assert {str(p.relative_to(installed)) for p in installed.rglob("*.py")} == modules
    # No tests, no benchmarks, no data beside them.
    top = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"stream", "analysis", "hydra_plugins", "bin"}


def test_runs_are_learned_compared_and_served(call: Callable[..., str], tmp_path: Path) -> None:
    """The job of a sweep runs in another process, where that can be."""
    assert call("--version").startswith("task-stream 0.")
    sweep = ("learner=finetune", "experiment=smoke", "task=[cola]", "sweep=s")
    shown = call("run", "-m", *sweep, "learner.lr=1e-3", *ELSEWHERE)
    assert "sweep in runs/sweeps/s: 1 finished, 0 skipped, 0 failed" in shown
    (path,) = tmp_path.rglob("results.json")
    found, folder = json.loads(path.read_text()), path.parent
    assert (found["config"]["learner"]["lr"], found["status"]) == (1e-3, "complete")
    assert folder.parent == tmp_path / "runs/sweeps/s"
    assert "finetune" in call("compare", str(folder))
    text = "a fine film\na dull one\n"
    answers = call("predict", str(folder), "--task", "cola", text=text).split()
    assert len(answers) == 2
    assert set(answers) <= {"acceptable", "unacceptable"}
