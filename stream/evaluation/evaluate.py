"""Evaluation: predictions, from logits to a cell of the matrix.

N examples of a split, K outputs (of a span task 2 a token, as many as its longest row has).
"""

import base64
import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import torch

from stream.data.batch import Batch
from stream.data.batching import evaluation_batches
from stream.data.spans.answers import Answers
from stream.data.task import Task
from stream.distributed.world import World
from stream.errors import TrainingDivergedError
from stream.evaluation.task_metrics import Score, gives_one_answer, more_scores, score
from stream.learners.base import Learner
from stream.models.heads import joined
from stream.record.matrix import Cell

BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}


def logits_of(
    learner: Learner,
    tasks: Sequence[Task],
    split: str,
    batch_tokens: int | None,
    device: torch.device,
) -> list[np.ndarray]:
    """Return the logits of each task's split, float32 [N, K], in example order; changes nothing.

    ``batch_tokens`` None takes that of the device. Several tasks share one pass; only a learner
    that ``serves_together`` can take them.
    """
    return outputs_of(learner, tasks, split, batch_tokens, device, learner.predict)


def outputs_of(
    learner: Learner,
    tasks: Sequence[Task],
    split: str,
    batch_tokens: int | None,
    device: torch.device,
    compute: Callable[[Batch], list[torch.Tensor]],
) -> list[np.ndarray]:
    """Return what ``compute`` gives for each task's split, float32 [N, ...]; as `logits_of`.

    ``compute`` maps a batch to a tensor a part, with a row an example; the tasks are being served.
    Of several ranks, each computes every so many-th batch, and all get everything.
    """
    world = World.now()
    chosen = [(task, task.split(split)) for task in tasks]
    rows: list[list[np.ndarray]] = [[] for _ in tasks]
    parts: list[list[torch.Tensor]] = [[] for _ in tasks]
    was_training = learner.model.training
    learner.model.eval()
    try:
        with ExitStack() as stack:
            for task in tasks:
                stack.enter_context(learner.serving(task))
            stack.enter_context(torch.no_grad())
            stack.enter_context(learner.model.computing())
            tokens = BATCH_TOKENS[device.type] if batch_tokens is None else batch_tokens
            turns = slice(world.rank, None, world.size)
            for owned, batch in evaluation_batches(chosen, learner.pad_id, tokens, turns):
                predicted = compute(batch.to(device))
                for (owner, indices), logits in zip(owned, predicted, strict=True):
                    rows[owner].append(indices)
                    parts[owner].append(logits.float())
            mine = [joined(of_task).cpu().numpy() if of_task else None for of_task in parts]
    finally:
        learner.model.train(was_training)
    rows, computed = _gathered(rows, mine, world)
    order = [np.argsort(np.concatenate(of_task)) for of_task in rows]
    return [values[places] for values, places in zip(computed, order, strict=True)]


def _gathered(
    rows: list[list[np.ndarray]], computed: list[np.ndarray | None], world: World
) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """Return the rows of each task and what was computed of them, of all ranks together."""
    if world.alone:  # a task has an example at least
        return rows, [found for found in computed if found is not None]
    found = world.of_all((rows, computed))
    every = [[piece for mine, _ in found for piece in mine[task]] for task in range(len(rows))]
    there = [[c for _, mine in found if (c := mine[task]) is not None] for task in range(len(rows))]
    return every, [joined([torch.from_numpy(c) for c in of_task]).numpy() for of_task in there]


def digest(logits: np.ndarray) -> str:
    """Return the SHA-256 of logits as little-endian float32, in example order."""
    return hashlib.sha256(np.ascontiguousarray(logits, dtype="<f4").tobytes()).hexdigest()


def seen_by(
    task: Task, logits: np.ndarray, targets: np.ndarray | Answers
) -> tuple[np.ndarray, np.ndarray | Answers]:
    """Return logits and targets as the task's own metric reads them.

    Those of a shared head become the task's own classes and, as one class more, the best of all
    others (`SharedClasses.own_view`): so accuracy counts another task's class as wrong, F1 is that
    of the task's own second class, and Matthews' correlation has one class more.
    """
    if task.shared is None or isinstance(targets, Answers):
        return logits, targets
    return task.shared.own_view(logits), task.shared.to_own(targets)


def task_score(task: Task, logits: np.ndarray, targets: np.ndarray | Answers) -> Score:
    """Return the task's own metric of its logits."""
    return score(task.spec.metric, *seen_by(task, logits, targets), task.name)


def correctness(task: Task, logits: np.ndarray, targets: np.ndarray | Answers) -> str | None:
    """Return which examples are right as base64 of packed bits; None for regression.

    A span is right if it matches exactly; a class of a shared head, if no other that was met wins.
    """
    if task.is_regression:
        return None
    logits, targets = seen_by(task, logits, targets)
    if isinstance(targets, Answers):
        right = targets.judged(logits, "exact_match") == 1
    else:
        right = logits.argmax(axis=1) == targets
    bits = np.packbits(right)
    return base64.b64encode(bits.tobytes()).decode("ascii")


def evaluate(
    learner: Learner, task: Task, split: str, batch_tokens: int | None, device: torch.device
) -> Cell:
    """Measure one task now.

    Raises:
        TrainingDivergedError: logits that are not finite; no score could be told from them.
    """
    return evaluated(learner, task, split, batch_tokens, device)[0]


def evaluated(
    learner: Learner, task: Task, split: str, batch_tokens: int | None, device: torch.device
) -> tuple[Cell, np.ndarray]:
    """Measure one task now; return the logits too, float32 [N, K].

    Raises:
        TrainingDivergedError: as `evaluate`.
    """
    started = time.perf_counter()
    (logits,) = logits_of(learner, [task], split, batch_tokens, device)
    require_finite(task, logits)
    targets = task.split(split).targets
    value, undefined = task_score(task, logits, targets)
    seconds = time.perf_counter() - started
    correct = correctness(task, logits, targets)
    seen = seen_by(task, logits, targets)
    more, constant = more_scores(task.spec, *seen, task.name), gives_one_answer(*seen)
    cell = Cell(
        value, digest(logits), "measured", seconds, undefined, correct, more, constant=constant
    )
    return cell, logits


def require_finite(task: Task, logits: np.ndarray) -> None:
    """Raise TrainingDivergedError unless all logits are finite."""
    if not np.isfinite(logits).all():
        raise TrainingDivergedError(
            f"logits of task {task.name!r} are not finite; try a smaller learner.lr"
        )
