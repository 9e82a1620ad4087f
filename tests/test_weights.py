"""Weights on disk: a task served from its file gives the very bits it gave before."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from stream.errors import UserError
from stream.learners.adapter import Adapter
from stream.weights import load_task, save_task, task_file
from tests.conftest import CPU, Stream


@pytest.fixture
def saved(tmp_path: Path, three_tasks) -> tuple[Stream, Path]:
    run = Stream(Adapter(size=4), three_tasks)
    run.run()
    for task in three_tasks:
        save_task(run.learner, task, tmp_path)
    return run, tmp_path


def test_a_loaded_task_gives_the_same_logits(saved, three_tasks) -> None:
    run, folder = saved
    fresh = Stream(Adapter(size=4), three_tasks)
    for task in reversed(three_tasks):  # in any order
        load_task(fresh.learner, task, folder, CPU)
    for task in three_tasks:
        assert fresh.evaluate(task).digest == run.evaluate(task).digest


def test_a_file_holds_what_the_task_owns_and_nothing_else(saved, three_tasks) -> None:
    run, folder = saved
    stored = load_file(task_file(folder, "b"))
    served = run.learner.served_state("b")
    assert stored.keys() < served.keys()
    assert all(torch.equal(stored[name], served[name]) for name in stored)
    shared = served.keys() - stored.keys()
    assert shared == {n for n in served if served[n] is run.learner.served_state("a").get(n)}


def test_bad_files_are_refused_in_one_line(saved, three_tasks) -> None:
    _, folder = saved
    other = Stream(Adapter(size=8), three_tasks)
    with pytest.raises(UserError, match=r"does not fit this learner: .* has shape \(4, 16\)"):
        load_task(other.learner, three_tasks[0], folder, CPU)
    path = task_file(folder, "a")
    stored = load_file(path)
    stored.pop(next(iter(stored)))
    save_file(stored, path)
    fresh = Stream(Adapter(size=4), three_tasks)
    with pytest.raises(UserError, match="1 names differ"):
        load_task(fresh.learner, three_tasks[0], folder, CPU)
    path.write_bytes(b"no tensors")
    with pytest.raises(UserError, match="no weights of 'a'"):
        load_task(Stream(Adapter(size=4), three_tasks).learner, three_tasks[0], folder, CPU)
    path.unlink()
    with pytest.raises(UserError, match="run with save_weights=true"):
        load_task(Stream(Adapter(size=4), three_tasks).learner, three_tasks[0], folder, CPU)
