"""Workers on Ray: two machines, as two raylets of this one; one of them is lost."""

import logging
import os
import signal
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream.errors import UserError
from stream.workers.engine import ATTEMPTS, Shared, Worker, WorkerLostError
from stream.workers.ray import RayEngine, gpu_share, ray_module

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
WAIT_S = 120


MISSING = find_spec("ray") is None
needs_ray = pytest.mark.skipif(MISSING, reason="Ray is not installed: pip install '.[ray]'")


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """Two raylets that believe they are machines of one CPU each."""
    ray_module()  # first, so that it is quiet
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def engine(machines: Any) -> Iterator[RayEngine]:
    with RayEngine(2, address=machines.address) as engine:
        yield engine


def machine() -> str:
    return ray_module().get_runtime_context().get_node_id()


def add(worker: Worker, shared: Shared, number: int) -> tuple[int, int]:
    worker.kept["calls"] = worker.kept.get("calls", 0) + 1
    worker.tell((number, worker.kept["calls"]))
    return int(shared.get()["rows"].sum()) + number, os.getpid()


def meet(worker: Worker, folder: Path, name: str) -> str:
    """Return where this runs, when the other one runs too."""
    (folder / name).touch()
    while len(list(folder.iterdir())) < 2 and not worker.stopping():
        time.sleep(0.05)
    return machine()


def die(worker: Worker, path: Path, times: int) -> int:
    died = len(path.read_text()) if path.exists() else 0
    if died < times:
        path.write_text("x" * (died + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return died


def refuse(worker: Worker) -> None:
    raise UserError("no such thing")


def say(worker: Worker) -> None:
    logging.getLogger("stream.of.a.worker").warning("heard %d", 7)


def lose(worker: Worker, folder: Path) -> str:
    """Return where the last of this job's attempts was; the first waits for its end."""
    (folder / machine()).touch()
    deadline = time.monotonic() + WAIT_S
    while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return machine()


def wait(worker: Worker) -> str:
    worker.tell("begun")
    while not worker.stopping():
        time.sleep(0.01)
    return "stopped"


@needs_ray
def test_jobs_are_done_on_both_machines(engine: RayEngine, tmp_path: Path) -> None:
    both = [engine.submit(name, meet, tmp_path, name) for name in "ab"]
    assert len({future.result(WAIT_S) for future in both}) == 2
    shared = engine.share({"rows": np.arange(10)})
    futures = [engine.submit(f"adding {n}", add, shared, n) for n in range(6)]
    results = [future.result(WAIT_S) for future in futures]
    assert [result for result, _ in results] == [45 + n for n in range(6)]
    told = engine.messages()
    assert sorted(number for number, _ in told) == list(range(6))
    # What a worker keeps is there at its next job.
    workers = len({process for _, process in results})
    assert sum(calls == 1 for _, calls in told) == workers <= 2


@needs_ray
def test_errors_come_as_they_were_raised_and_logs_to_their_loggers(
    engine: RayEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UserError, match="no such thing") as found:
        engine.submit("refusing", refuse).result(WAIT_S)
    assert "refuse" in str(found.value.__cause__)  # where on the worker
    engine.submit("saying", say).result(WAIT_S)
    with caplog.at_level(logging.WARNING):
        assert engine.messages() == []
    assert "heard 7" in caplog.messages


@needs_ray
def test_a_job_whose_worker_dies_is_done_again(engine: RayEngine, tmp_path: Path) -> None:
    often = engine.submit("dying twice", die, tmp_path / "twice", ATTEMPTS - 1)
    always = engine.submit("dying always", die, tmp_path / "always", 99)
    assert often.result(WAIT_S) == ATTEMPTS - 1
    with pytest.raises(WorkerLostError, match="dying always: the worker died 3 times"):
        always.result(WAIT_S)
    assert len((tmp_path / "always").read_text()) == ATTEMPTS


@needs_ray
def test_what_no_machine_has_is_said(machines: Any, engine: RayEngine) -> None:
    del engine  # connected
    with pytest.raises(UserError, match=r"no machine of the Ray cluster has 1 CPU and 0\.25 GPU"):
        RayEngine(4, on_gpus=True, per_gpu=4, address=machines.address).__enter__()


def test_the_shares_of_a_gpu_fit_on_it() -> None:
    for per_gpu in range(1, 40):
        share = round(10_000 * gpu_share(per_gpu))  # Ray counts so
        assert per_gpu * share <= 10_000 < (per_gpu + 1) * share


@needs_ray
def test_a_lost_machine_costs_no_job(machines: Any, engine: RayEngine, tmp_path: Path) -> None:
    node = next(iter(machines.worker_nodes))
    lost = node.node_id
    for n in range(2):
        (tmp_path / str(n)).mkdir()
    both = [engine.submit(f"losing {n}", lose, tmp_path / str(n)) for n in range(2)]
    deadline = time.monotonic() + WAIT_S
    while not list(tmp_path.glob(f"*/{lost}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    stays = next(n for n in range(2) if not (tmp_path / str(n) / lost).exists())
    machines.remove_node(node, allow_graceful=False)
    (tmp_path / str(stays) / "go on").touch()
    assert lost not in {future.result(WAIT_S) for future in both}


@needs_ray
def test_stopping_cancels_and_asks(engine: RayEngine) -> None:
    """Last: nothing runs after it."""
    running, waiting = (engine.submit(name, wait) for name in ("first", "second"))
    deadline = time.monotonic() + WAIT_S
    while "begun" not in engine.messages() and time.monotonic() < deadline:
        time.sleep(0.05)
    engine.stop()
    assert running.result(WAIT_S) == "stopped"
    assert waiting.cancelled()
