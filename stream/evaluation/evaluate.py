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

from stream.data.batches import Batch, evaluation_batches
from stream.data.spans.answers import Answers
from stream.data.task import Task
from stream.errors import TrainingDivergedError
from stream.evaluation.task_metrics import more_scores, score
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
    """
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
            for owned, batch in evaluation_batches(chosen, learner.pad_id, tokens):
                predicted = compute(batch.to(device))
                for (owner, indices), logits in zip(owned, predicted, strict=True):
                    rows[owner].append(indices)
                    parts[owner].append(logits.float())
            computed = [joined(of_task).cpu().numpy() for of_task in parts]
    finally:
        learner.model.train(was_training)
    order = [np.argsort(np.concatenate(of_task)) for of_task in rows]
    return [values[places] for values, places in zip(computed, order, strict=True)]


def digest(logits: np.ndarray) -> str:
    """Return the SHA-256 of logits as little-endian float32, in example order."""
    return hashlib.sha256(np.ascontiguousarray(logits, dtype="<f4").tobytes()).hexdigest()


def correctness(task: Task, logits: np.ndarray, targets: np.ndarray | Answers) -> str | None:
    """Return which examples are right as base64 of packed bits; None for regression.

    A span is right if it matches exactly.
    """
    if task.is_regression:
        return None
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
    started = time.perf_counter()
    (logits,) = logits_of(learner, [task], split, batch_tokens, device)
    require_finite(task, logits)
    targets = task.split(split).targets
    value, undefined = score(task.spec.metric, logits, targets)
    seconds = time.perf_counter() - started
    correct = correctness(task, logits, targets)
    more = more_scores(task.spec, logits, targets)
    return Cell(value, digest(logits), "measured", seconds, undefined, correct, more)


def require_finite(task: Task, logits: np.ndarray) -> None:
    """Raise TrainingDivergedError unless all logits are finite."""
    if not np.isfinite(logits).all():
        raise TrainingDivergedError(
            f"logits of task {task.name!r} are not finite; try a smaller learner.lr"
        )
