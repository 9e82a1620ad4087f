"""What a router is: it gives each text a cost for every task, and the lowest cost decides.

Two families. `FeatureRouter` compares a text with what it keeps of each task in the space of the
pretrained encoder; one pass of that encoder finds the task. `OutputRouter` keeps nothing and
compares the outputs of the tasks themselves; every task has to answer every text.

N texts, T tasks, D width of features, K outputs of a task.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import torch

from stream.config.router import RouterConfig

Tensors = dict[str, torch.Tensor]


class Router(ABC):
    """Infers tasks.

    What it keeps is float64 and int64, on the CPU: ``tasks`` holds what it keeps of one task,
    which no later task changes, ``shared`` what it keeps of all of them together.
    """

    keeps_tasks: ClassVar[bool] = False
    """Whether it keeps anything of a task."""

    def __init__(self, config: RouterConfig):
        """Know no task yet."""
        self.config = config
        self.tasks: dict[str, Tensors] = {}
        self.shared: Tensors = {}

    @abstractmethod
    def passes(self, num_tasks: int) -> int:
        """Return the forward passes of serving one text, the answer's among them."""


class FeatureRouter(Router):
    """Finds a text's task by its features [D]."""

    keeps_tasks: ClassVar[bool] = True

    def passes(self, num_tasks: int) -> int:
        """Return 2: the pretrained encoder's, and that of the task that was found."""
        del num_tasks
        return 2

    @abstractmethod
    def learn(self, task: str, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        """Learn a task, in one pass over its training rows.

        Args:
            task: its name.
            parts: features, float64 [B, D], and classes, int64 [B], of some rows at a time.
        """

    @abstractmethod
    def costs(self, features: np.ndarray, tasks: Sequence[str]) -> np.ndarray:
        """Return the cost of each text for each task, float64 [N, T].

        Args:
            features: float64 [N, D].
            tasks: names of learned tasks, [T].
        """


class OutputRouter(Router):
    """Finds a text's task by what each task answers."""

    def passes(self, num_tasks: int) -> int:
        """Return one for each task: the answer is among them."""
        return num_tasks

    @abstractmethod
    def cost(self, logits: np.ndarray) -> np.ndarray:
        """Return the cost of each text for the task that gave these logits, float64 [N].

        Args:
            logits: float64 [N, K].
        """


def decide(costs: np.ndarray) -> np.ndarray:
    """Return the task of the lowest cost, int64 [N]; of equal ones the first.

    Args:
        costs: float64 [N, T].
    """
    return costs.argmin(axis=1)
