"""Class means and ridge regression from sums that grow with the tasks: no row is kept.

M features of a row, K outputs; X [N, M] the features of rows, Y [N, K] their targets: one-hot, or
scores around the middle of their range. Everything is in float64.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from stream.data.task import Task
from stream.learners._shared.features import text_vectors
from stream.models.task_model import TaskModel

PENALTIES = tuple(10.0**power for power in range(-8, 9))
"""What RanPAC tries (McDonnell et al. 2023, arXiv 2307.02251, algorithm 1 and its code)."""
KEPT = ("gram", "products", "counts")


@dataclass(frozen=True)
class Sums:
    """What rows leave.

    Attributes:
        gram: X'X, float64 [M, M]; [0, 0] where no regression needs it.
        products: X'Y, float64 [M, K]; with one-hot targets the sum of each class's features.
        counts: the sum of Y, float64 [K]; with one-hot targets the rows of each class.
        squares: the sum of Y squared, a scalar.
    """

    gram: torch.Tensor
    products: torch.Tensor
    counts: torch.Tensor
    squares: torch.Tensor

    @classmethod
    def of(cls, features: torch.Tensor, targets: torch.Tensor, *, gram: bool) -> "Sums":
        """Return those of rows; ``gram`` says whether X'X is wanted."""
        read = features if gram else features[:, :0]
        return cls(read.T @ read, features.T @ targets, targets.sum(0), targets.square().sum())

    @classmethod
    def kept(cls, tensors: Mapping[str, torch.Tensor], head: str, outputs: int) -> "Sums | None":
        """Return what earlier tasks left for a head; None if it is new.

        Args:
            tensors: where it is.
            head: the head's name.
            outputs: K now; outputs that it got since have sums of 0.
        """
        if f"counts.{head}" not in tensors:
            return None
        gram, products, counts = (tensors[f"{name}.{head}"] for name in KEPT)
        more = (0, outputs - len(counts))
        products, counts = functional.pad(products, more), functional.pad(counts, more)
        return cls(gram, products, counts, counts.new_zeros(()))

    def named(self, head: str) -> dict[str, torch.Tensor]:
        """Return what the next task of a head needs, by name."""
        return {f"{name}.{head}": getattr(self, name) for name in KEPT}

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, name) + getattr(other, name) for name in vars(self)))


def sums_of(
    model: TaskModel, task: Task, pad_id: int, held_out: np.ndarray, *, gram: bool
) -> tuple[Sums, Sums]:
    """Return what a task's training rows leave: the others, and those held out.

    Args:
        model: what reads them.
        task: the task.
        pad_id: the tokenizer's padding token.
        held_out: whether each row is held out, bool [N].
        gram: whether X'X is wanted.
    """
    split, middle = task.split("train"), middle_of(task)
    outputs = model.head(task.head_name).outputs  # of a shared head the classes met so far
    found: dict[bool, Sums] = {}
    for rows, vectors in text_vectors(model, task, pad_id):
        labels = torch.from_numpy(split.labels[rows]).to(vectors.device)
        if task.is_regression:
            targets = labels.double()[:, None] - middle
        else:
            targets = functional.one_hot(labels, outputs).double()
        for held in (False, True):
            mine = torch.from_numpy(held_out[rows] == held).to(vectors.device)
            sums = Sums.of(vectors[mine], targets[mine], gram=gram)
            found[held] = found[held] + sums if held in found else sums
    return found[False], found[True]


def middle_of(task: Task) -> float:
    """Return the middle of a task's scores; 0 of classes."""
    return sum(task.spec.score_range) / 2 if task.spec.score_range else 0.0


class Ridge:
    """The coefficients W = (X'X + penalty I)^-1 X'Y of some rows, for any penalty."""

    def __init__(self, sums: Sums):
        values, self._axes = torch.linalg.eigh(sums.gram)
        self._values = values.clamp(min=0)  # fewer rows than features: 0, but for rounding
        self._turned = self._axes.T @ sums.products

    def coefficients(self, penalty: float) -> torch.Tensor:
        """Return W, float64 [M, K]."""
        return self._axes @ (self._turned / (self._values + penalty)[:, None])

    def chosen(self, held_out: Sums) -> float:
        """Return the one of `PENALTIES` with the least squared error on other rows."""
        errors = []
        for penalty in PENALTIES:
            weights = self.coefficients(penalty)
            fitted = (weights * (held_out.gram @ weights - 2 * held_out.products)).sum()
            errors.append(float(held_out.squares + fitted))
        return PENALTIES[int(np.argmin(errors))]
