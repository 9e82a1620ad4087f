"""Evaluation: one task's predictions, from logits to a cell of the matrix.

N examples of a split, K outputs.
"""

import hashlib
import time
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import torch

from stream.errors import TrainingDivergedError
from stream.matrix import Cell
from stream.scoring import score
from stream.tasks.batches import Batch, evaluation_batches
from stream.tasks.task import Task


class Predictor(Protocol):
    """What evaluation asks of a learner."""

    pad_id: int

    @property
    def model(self) -> torch.nn.Module: ...  # noqa: D102

    def serving(self, task: Task) -> AbstractContextManager[None]: ...  # noqa: D102
    def predict(self, batch: Batch) -> torch.Tensor: ...  # noqa: D102


def logits_of(
    learner: Predictor, task: Task, split: str, batch_tokens: int, device: torch.device
) -> np.ndarray:
    """Return the logits of a split, float32 [N, K], in example order; changes nothing."""
    rows = task.split(split)
    was_training = learner.model.training
    learner.model.eval()
    order, parts = [], []
    try:
        with learner.serving(task), torch.inference_mode():
            for indices, batch in evaluation_batches(task, rows, learner.pad_id, batch_tokens):
                order.append(indices)
                parts.append(learner.predict(batch.to(device)).float())
            computed = torch.cat(parts).cpu().numpy()
    finally:
        learner.model.train(was_training)
    logits = np.empty_like(computed)
    logits[np.concatenate(order)] = computed
    return logits


def digest(logits: np.ndarray) -> str:
    """Return the SHA-256 of logits as little-endian float32, in example order."""
    return hashlib.sha256(np.ascontiguousarray(logits, dtype="<f4").tobytes()).hexdigest()


def evaluate(
    learner: Predictor, task: Task, split: str, batch_tokens: int, device: torch.device
) -> Cell:
    """Measure one task now.

    Raises:
        TrainingDivergedError: logits that are not finite; no score could be told from them.
    """
    started = time.perf_counter()
    logits = logits_of(learner, task, split, batch_tokens, device)
    if not np.isfinite(logits).all():
        raise TrainingDivergedError(
            f"logits of task {task.name!r} are not finite; try a smaller learner.lr"
        )
    value, undefined = score(task.spec.metric, logits, task.split(split).labels)
    return Cell(value, digest(logits), "measured", time.perf_counter() - started, undefined)
