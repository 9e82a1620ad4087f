"""Evaluation with inferred tasks: a router chooses among those learned, and that task answers.

A text whose inferred task is its own is answered as where the task is known: its logits are taken
from there. What another task answers is computed only where it may be right: `foreign`.

N texts, T learned tasks, K outputs of a task.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from stream.data.task import Task
from stream.evaluation.evaluate import BATCH_TOKENS, evaluated, logits_of, require_finite
from stream.evaluation.foreign import Foreign, score_with_foreign
from stream.evaluation.task_metrics import Score
from stream.learners.base import Learner
from stream.record.matrix import Cell, Routed
from stream.routing.base import FeatureRouter, OutputRouter, Router, Tensors, decide
from stream.routing.features import PretrainedFeatures

State = Callable[[Task], str]
"""Returns the fingerprint of what serves a task now."""


@dataclass
class Routing:
    """The router of a run, and what it reads.

    Attributes:
        router: chooses the task.
        features: what it reads of the pretrained encoder; None for one that reads outputs.
        learner: whatever predicts.
        device: where.
        batch_tokens: the largest number of padded tokens per batch; None takes the device's.
        shared_labels: groups of tasks whose labels mean the same, name by name.
    """

    router: Router
    features: PretrainedFeatures | None
    learner: Learner
    device: torch.device
    batch_tokens: int | None
    shared_labels: Sequence[Sequence[str]] = ()
    _features: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    _costs: dict[tuple[str, str, str], tuple[str, np.ndarray]] = field(default_factory=dict)

    def learn(self, task: Task) -> float:
        """Let the router learn a task from its training rows; return the seconds."""
        started = time.perf_counter()
        if isinstance(self.router, FeatureRouter):
            split = task.split("train")
            has_classes = not (task.is_regression or task.is_span)
            classes = split.labels if has_classes else np.zeros(len(split), np.int64)
            parts = ((vectors, classes[places]) for places, vectors in self._passed(task, "train"))
            self.router.learn(task.name, parts)
        return time.perf_counter() - started

    def stored_states(self) -> list[Tensors]:
        """Return all that must be stored to route among the tasks learned so far."""
        kept = [*self.router.tasks.values(), self.router.shared]
        return [*kept, *([self.features.tensors()] if self.features is not None else [])]

    def inferred(
        self, rows: Task, split: str, tasks: Sequence[Task], state: State | None = None
    ) -> np.ndarray:
        """Return the place in ``tasks`` of each text's task, int64 [N].

        Args:
            rows: the task that holds the texts.
            split: which of its splits.
            tasks: those learned, in order.
            state: what serves a task now, so that nothing is computed twice; None computes all.
        """
        names = [task.name for task in tasks]
        if isinstance(self.router, FeatureRouter):
            features = self._features_of(rows, split, keep=state is not None)
            return decide(self.router.costs(features, names))
        assert isinstance(self.router, OutputRouter)
        costs = [self._output_costs(rows, split, task, state) for task in tasks]
        return decide(np.stack(costs, axis=1))

    def _passed(self, task: Task, split: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield places and features of a task's rows."""
        assert self.features is not None
        tokens = BATCH_TOKENS[self.device.type] if self.batch_tokens is None else self.batch_tokens
        return self.features.of(task, task.split(split), self.learner.pad_id, tokens)

    def _features_of(self, rows: Task, split: str, *, keep: bool) -> np.ndarray:
        """Return the features of a task's rows, float64 [N, D]; kept ones are computed once."""
        key = rows.name, split
        if keep and key in self._features:
            return self._features[key].astype(np.float64)
        parts = list(self._passed(rows, split))
        order = np.argsort(np.concatenate([places for places, _ in parts]))
        found = np.concatenate([vectors for _, vectors in parts])[order]
        if keep:
            self._features[key] = found.astype(np.float32)  # as the encoder gave them: exact
        return found

    def _output_costs(self, rows: Task, split: str, task: Task, state: State | None) -> np.ndarray:
        """Return the cost of each text for a task, float64 [N].

        That of a task which is served with the same tensors as before was computed before.
        """
        assert isinstance(self.router, OutputRouter)
        key, mark = (rows.name, split, task.name), "" if state is None else state(task)
        known = self._costs.get(key)
        if state is not None and known is not None and known[0] == mark:
            return known[1]
        logits = self.answers(rows, split, task)
        costs = self.router.cost(logits.astype(np.float64))
        if state is not None:
            self._costs[key] = mark, costs
        return costs

    def answers(
        self, rows: Task, split: str, task: Task, places: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the logits that a task gives the texts of another one, float32 [N, K].

        Args:
            rows: the task that holds the texts.
            split: which of its splits.
            task: the task that answers.
            places: which of the texts; None takes all.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        found = rows.split(split)
        asked = replace(task, splits={split: found if places is None else found.select(places)})
        (logits,) = logits_of(self.learner, [asked], split, self.batch_tokens, self.device)
        require_finite(task, logits)
        return logits

    def evaluate(self, task: Task, split: str, tasks: Sequence[Task], state: State) -> Cell:
        """Measure one task with its own answers, and with those of the inferred tasks.

        Args:
            task: the task, one of ``tasks``.
            split: what it is evaluated on.
            tasks: those learned, in order.
            state: what serves a task now.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        cell, logits = evaluated(self.learner, task, split, self.batch_tokens, self.device)
        started = time.perf_counter()
        own = [other.name for other in tasks].index(task.name)
        chosen = self.inferred(task, split, tasks, state)
        found = self._score(task, split, tasks, chosen, logits)
        routed = Routed(
            score=found.value,
            accuracy=float((chosen == own).mean()),
            digest=hashlib.sha256(chosen.astype("<i4").tobytes()).hexdigest(),
            counts=np.bincount(chosen, minlength=len(tasks)).tolist(),
            passes=self.router.passes(len(tasks)),
            seconds=time.perf_counter() - started,
            undefined=found.undefined,
        )
        return replace(cell, routed=routed)

    def _score(
        self, task: Task, split: str, tasks: Sequence[Task], chosen: np.ndarray, logits: np.ndarray
    ) -> Score:
        """Score the answers of the chosen tasks; ``logits`` are those of the task itself."""
        foreign = []
        for place in np.unique(chosen).tolist():
            if (other := tasks[place]).name != task.name:
                rows = np.flatnonzero(chosen == place)
                shared = self._share_labels(task, other)
                theirs = self.answers(task, split, other, rows) if shared else None
                foreign.append(Foreign(other, rows, theirs))
        return score_with_foreign(task, logits, task.split(split).targets, foreign)

    def _share_labels(self, one: Task, other: Task) -> bool:
        """Return whether the stream says that the labels of two tasks mean the same."""
        if one.is_span or one.spec.target != other.spec.target:
            return False
        names = {one.name, other.name}
        return any(names <= set(group) for group in self.shared_labels)
