"""Linear probes: heads that are trained anew on the encoder as it is, to see what it still tells.

A task that is forgotten may be lost in the encoder, or only its old head no longer fits (Davari et
al. 2022, arXiv 2203.13381, section 3; Ramasesh et al. 2021). A probe of the encoder after the task
and one at the end tell the two apart. They are logistic regressions (of scores, ridge regressions)
on the standardized features of the training rows, exactly what a head reads; the learner is not
changed.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from stream.config.run import EvaluationConfig
from stream.data.batch import Batch
from stream.data.task import Task
from stream.evaluation.evaluate import outputs_of, require_finite, task_score
from stream.learners.base import Learner
from stream.record.run_record import LinearProbeRecord

STEPS = 1000  # of the solver, at most
PENALTY = 1.0  # scikit-learn's default, of both


def probe_row(
    learner: Learner,
    tasks: Sequence[Task],
    index: int,
    settings: EvaluationConfig,
    device: torch.device,
    record: LinearProbeRecord,
) -> None:
    """Probe the task that was just learned; after the last one also every task.

    Args:
        learner: whatever has an encoder.
        tasks: the stream.
        index: position of the task that was just learned.
        settings: which split is scored, and how batches are made.
        device: where the learner predicts.
        record: gets the scores.
    """
    started = time.perf_counter()
    record.learned.append(probe_score(learner, tasks[index], settings, device))
    if index == len(tasks) - 1:
        record.final = [probe_score(learner, task, settings, device) for task in tasks]
    record.seconds += time.perf_counter() - started


def probe_score(
    learner: Learner, task: Task, settings: EvaluationConfig, device: torch.device
) -> float | None:
    """Return the score of a new head for ``task``; None of a span task, which reads every token."""
    if task.is_span:
        return None

    def features(split: str) -> np.ndarray:
        tokens = settings.batch_tokens
        (found,) = outputs_of(learner, [task], split, tokens, device, _read(learner))
        require_finite(task, found)
        return found.astype(np.float64)

    head = _fitted(features("train"), task)
    logits = head(features(settings.split))
    return task_score(task, logits, task.split(settings.split).targets).value


def _read(learner: Learner) -> Callable[[Batch], list[torch.Tensor]]:
    """Return what gives the features of a batch of one task, [B, D]: those that a head reads."""
    return lambda batch: [learner.model.states(batch).texts]


def _fitted(features: np.ndarray, task: Task) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from features [N, D] to logits [N, K] that the training rows give."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    targets = task.split("train").labels
    if task.is_regression:
        line: Any = make_pipeline(StandardScaler(), Ridge(alpha=PENALTY)).fit(features, targets)
        return lambda rows: line.predict(rows)[:, None]
    present = np.unique(targets)
    if len(present) == 1:  # nothing to divide
        return lambda rows: np.tile(np.eye(task.num_outputs)[present[0]], (len(rows), 1))
    solver = LogisticRegression(C=PENALTY, max_iter=STEPS)
    classifier: Any = make_pipeline(StandardScaler(), solver).fit(features, targets)

    def logits(rows: np.ndarray) -> np.ndarray:
        found = np.full((len(rows), task.num_outputs), -np.inf)
        found[:, present] = classifier.predict_log_proba(rows)
        return found

    return logits
