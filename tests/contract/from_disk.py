"""What a learner keeps, written by the program's own checkpoints and read into a fresh one."""

import dataclasses
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from stream.config.run import CheckpointConfig
from stream.data.task import Task
from stream.fingerprint import Fingerprinter, tensor_digest
from stream.learners.base import Learner
from stream.models.encoder import Encoder
from stream.run.accounting import count_stored
from stream.run.checkpoint_manager import CheckpointManager, SavedRun
from stream.training.fit_state import Step
from stream.training.loop import fit
from tests.builders import SHORT, Stream, tiny_encoder
from tests.record.made_record import made_record

BACK = "as they come back from disk"


class StopError(Exception):
    """Ends learning where the last checkpoint is."""


def evidence(run: Stream, tasks: Sequence[Task]) -> dict[str, Any]:
    """What `verify` compares: logits, tensors and fingerprint of each task, what is stored."""
    states = {task.name: run.learner.served_state(task.name) for task in tasks}
    return {
        "logits": {task.name: run.digest(task) for task in tasks},
        "tensors": {
            task: {name: tensor_digest(tensor) for name, tensor in state.items()}
            for task, state in states.items()
        },
        "fingerprints": {task: Fingerprinter().of(state) for task, state in states.items()},
        "stored": count_stored(run.learner.stored_states(tasks)),
        "trained": run.learner.num_trained(tasks[-1]),
    }


@contextmanager
def spoiled(run: Stream, kept: Container[str]) -> Iterator[None]:
    """Have no number in all other parameters for the block; then they are what they were."""
    others = [parameter for name, parameter in run.model.named_parameters() if name not in kept]
    values = [parameter.detach().clone() for parameter in others]
    with torch.no_grad():
        for parameter in others:
            parameter.fill_(float("nan"))
        try:
            yield
        finally:
            for parameter, value in zip(others, values, strict=True):
                parameter.copy_(value)


def compare(found: dict[str, Any], expected: dict[str, Any], where: str) -> None:
    for kind, value in expected.items():
        assert found[kind] == value, f"{kind} {where}"


def checkpoints(folder: Path) -> CheckpointManager:
    folder.mkdir(exist_ok=True)
    return CheckpointManager(folder, CheckpointConfig())


def reopened(folder: Path) -> tuple[CheckpointManager, SavedRun]:
    manager = checkpoints(folder)
    saved = manager.latest()
    assert saved is not None
    return manager, saved


def check_serves_from_disk(
    run: Stream, make: Callable[[], Learner], folder: Path, expected: dict[str, Any]
) -> None:
    """A fresh learner and a fresh model serve the same; no row of the tasks is read to load.

    Args:
        run: what is saved.
        make: makes the learner.
        folder: where to; an empty folder or none.
        expected: the `evidence` of all tasks that the run has learned.
    """
    tasks = run.learner.learned
    checkpoints(folder).save(run.learner, made_record())
    fresh = run.fresh(make())
    manager, saved = reopened(folder)
    rowless = [dataclasses.replace(task, splits={}) for task in tasks]
    manager.load_tasks(saved, fresh.learner, rowless, serve_only=True)
    kinds = set(expected)
    if not run.learner.tags.parameter_isolation:
        kinds.remove("trained")  # of the task that is being learned
    compare(evidence(fresh, tasks), {k: v for k, v in expected.items() if k in kinds}, BACK)


def halted(run: Stream, folder: Path) -> list[Path]:
    """Learn one task and a part of the next; return folders of checkpoints made meanwhile.

    One is early in the next task and one right before its last step, so that each stage of a
    method with two is among them; without any step there is one between the tasks.
    """
    tasks, places = run.tasks, []
    fit(run.learner, tasks[0], SHORT)
    steps = run.learner.workload(tasks[1], SHORT).steps
    moments = {steps - 1, min(3, steps - 1)}

    def save(within: Any = None) -> None:
        places.append(folder / f"checkpoint {len(places)}")
        checkpoints(places[-1]).save(run.learner, made_record(), within)

    def on_step(now: Step) -> None:
        if now.number in moments:
            save((1, now.save()))
        if now.number == max(moments):
            raise StopError

    if not steps:
        save()
        return places
    try:
        fit(run.learner, tasks[1], SHORT, on_step)
    except StopError:
        return places
    raise AssertionError("learning was not stopped")


def check_goes_on(
    make: Callable[[], Learner],
    tasks: Sequence[Task],
    expected: dict[str, Any],
    folder: Path,
    encoder: Callable[[], Encoder] = tiny_encoder,
) -> None:
    """A fresh learner goes on from disk, learns the other tasks, and ends where one run ends.

    Args:
        make: makes the learner.
        tasks: at least two.
        expected: the `evidence` of a run that was not stopped.
        folder: an empty folder.
        encoder: makes the encoder.
    """
    for place in halted(Stream(make(), list(tasks), encoder=encoder), folder):
        again = Stream(make(), list(tasks), encoder=encoder)
        manager, saved = reopened(place)
        manager.load_tasks(saved, again.learner, tasks[:1])
        fit(again.learner, tasks[1], SHORT, resumed=manager.position(saved))
        for task in tasks[2:]:
            fit(again.learner, task, SHORT)
        compare(evidence(again, tasks), expected, f"after going on from {place.name}")
