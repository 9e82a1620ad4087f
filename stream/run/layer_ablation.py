"""Removes trained adapters from ranges of layers, without learning again (Houlsby et al. 2019).

Section 3.6 and figure 6, left and centre: what each part of the encoder contributes.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from stream.data.task import Task
from stream.errors import require
from stream.evaluation.task_metrics import score
from stream.run.run import Run


@runtime_checkable
class Removable(Protocol):
    """A learner whose adapters can be taken out of a range of layers."""

    def without_layers(self, first: int, last: int) -> AbstractContextManager[None]:
        """Serve without the adapters of layers ``first`` to ``last`` (from 0) inside the block."""
        ...


@dataclass(frozen=True)
class LayerRangeScores:
    """Scores of one task without the adapters of each range of layers.

    Attributes:
        full: with all adapters.
        without: float64 [L, L]; cell (first, last) is without layers first to last, else NaN. L
            counts every use of a layer that is used several times.
        majority: of always predicting the most frequent training class (or the mean score).
    """

    task: str
    split: str
    full: float
    without: np.ndarray
    majority: float


def layer_range_scores(run: Run, task: Task, split: str) -> LayerRangeScores:
    """Score ``task`` without the adapters of every contiguous range of layers.

    Args:
        run: a run that was opened, with the weights of the task.
        task: the task.
        split: what it is scored on.

    Raises:
        UserError: a learner without adapters.
    """
    learner = run.learner
    require(
        isinstance(learner, Removable), f"learner {learner.name!r} has no adapters to take away"
    )
    assert isinstance(learner, Removable)
    layers = learner.model.encoder.num_layers
    without = np.full((layers, layers), np.nan)
    for first in range(layers):
        for last in range(first, layers):
            with learner.without_layers(first, last):
                without[first, last] = run.measure(task, split).score
    full = run.measure(task, split).score
    return LayerRangeScores(task.name, split, full, without, majority_score(task, split))


def majority_score(task: Task, split: str) -> float:
    """Return the score of a constant prediction: the most frequent training label or the mean.

    There is none in common to all contexts, so the logits of questions are all the same.
    """
    train, rows = task.split("train").labels, task.split(split).targets
    if task.is_span:
        logits = np.zeros((len(task.split(split)), 2 * task.split(split).lengths.max()))
    elif task.is_regression:
        logits = np.full((len(rows), 1), train.mean(), np.float32)
    else:
        counts = np.bincount(train, minlength=task.num_outputs)
        logits = np.tile(counts.astype(np.float32), (len(rows), 1))
    return score(task.spec.metric, logits, rows, task.name).value
