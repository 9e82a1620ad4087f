"""What workers import early: it ends with the first process, and has the right environment."""

import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from stream.run import preloaded

# The module that the fork server imports here is quick, and says in which environment.
PROGRAM = """
import os, sys
from multiprocessing import get_context
from stream.workers.fork_server import begin_fork_server, without_main

begin_fork_server(["quick"], early=True)
if sys.argv[1] == "changed":
    os.environ["SEEN_BY_WORKERS"] = "now"
begin_fork_server(["quick"])
process = get_context("forkserver").Process(target=print, args=(os.getpid(),))
with without_main():
    process.start()
process.join()
"""
QUICK = """
import os
with open("seen", "a") as file:
    file.write(os.environ["SEEN_BY_WORKERS"] + " ")
"""


@pytest.mark.parametrize(("changed", "seen"), [("same", "before "), ("changed", "before now ")])
def test_workers_have_the_environment_that_there_is_when_they_start(
    changed: str, seen: str, tmp_path: Path
) -> None:
    (tmp_path / "quick.py").write_text(QUICK)
    paths = os.pathsep.join([str(Path.cwd()), str(tmp_path)])
    environment = os.environ | {"PYTHONPATH": paths, "SEEN_BY_WORKERS": "before"}
    program = [sys.executable, "-c", PROGRAM, changed]
    subprocess.run(program, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "seen").read_text() == seen


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["learner=adapter", "workers=2"], True),
        (["workers.count=16"], True),
        (["workers=1"], False),
        (["workers=2", "--help"], False),
        (["-m", "workers=2", "seed=1,2"], False),
        (["workers=2", "workers.engine=ray"], False),
        (["learner=adapter"], False),
    ],
)
def test_what_asks_for_workers(
    arguments: Sequence[str], begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(preloaded, "begin_fork_server", lambda *_, early: begun.append(early))
    preloaded.begin_early(arguments)
    assert begun == [True] * begins


@pytest.mark.parametrize(
    ("before", "for_good", "freezes"), [(0, False, 0), (9, False, 1), (0, True, 1)]
)
def test_garbage_is_left_out_for_good_only_where_the_process_ends_with_its_work(
    before: int, for_good: bool, freezes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "looks_for_none.py").write_text("import gc\nCOLLECTS = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: before)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(gc.isenabled()))
    for _ in range(2):  # the second time it is there
        preloaded.import_together(["looks_for_none"], for_good=for_good)
    assert not sys.modules.pop("looks_for_none").COLLECTS
    assert frozen == [False] * freezes
    assert gc.isenabled()
