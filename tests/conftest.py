"""Settings, hooks and fixtures that the tests share.

The process that hands out the tests reads this file too and runs none of them, so nothing heavy is
imported here: what the tests build is in `tests.builders`.
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stream.config.task import TaskSpec
    from stream.data.task import Task
    from tests.builders import Stream

os.environ["OMP_NUM_THREADS"] = "1"  # tests run in several processes
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "offline"
os.environ["WANDB_SILENT"] = "true"

# `nohup`, and a script that starts the tests in the background, let signals be ignored, which the
# program heeds: it would not be stopped by them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_configure() -> None:
    """Make a cache for these tests; one process may run others after them, such as a mutant's."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="task-stream-tests-")


def pytest_unconfigure() -> None:
    """Remove it."""
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not walk what is imported, neither meanwhile nor again and again while tests run.

    Models are made of many small objects, so the steps between walks are long ones.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _store() -> None:
    """What `run_stream.main` registers before it composes."""
    from stream.run.settings import register_groups

    register_groups()


@pytest.fixture(scope="session")
def all_specs() -> "dict[str, TaskSpec]":
    """Every task's specification from conf/task/."""
    from tests.composed import compose_run

    conf = Path(__file__).parent.parent / "conf"
    names = ",".join(sorted(path.stem for path in (conf / "task").glob("*.yaml")))
    return compose_run(conf, [f"task=[{names}]"])[0].task


@pytest.fixture
def three_tasks() -> "list[Task]":
    """Those of `made_tasks`."""
    from tests.builders import made_tasks

    return made_tasks()


@pytest.fixture
def stream() -> "Callable[..., Stream]":
    """Build a `Stream`."""
    from tests.builders import Stream

    return Stream
