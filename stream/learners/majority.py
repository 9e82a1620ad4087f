"""The floor: the most frequent class, or the mean score, of a task's training rows.

The majority-class line of Houlsby et al. 2019 (arXiv 1902.00751), figure 6. The logits are the
logarithms of the class frequencies, with one row added to each class (Laplace) so that a class
without rows stays finite; the order of the classes is that of their counts.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.data.batches import Batch
from stream.data.task import Task
from stream.learners._shared.fitted import Fitted
from stream.learners.base import Tags, Tensors


@dataclass
class Majority(Fitted):
    """Answer with the most frequent class."""

    tags: ClassVar[Tags] = replace(
        Fitted.tags, paper="Houlsby et al. 2019, arXiv 1902.00751", stores="class frequencies"
    )

    def fitted(self, task: Task) -> Tensors:
        """Return the logits [K] of every text."""
        labels = task.split("train").labels
        if task.is_regression:
            values = labels.mean(dtype=np.float64, keepdims=True)
        else:
            counts = np.bincount(labels, minlength=task.num_outputs) + 1
            values = np.log(counts / counts.sum())
        return {"logits": torch.from_numpy(values.astype(np.float32))}

    def logits(self, state: Tensors, task: Task, batch: Batch) -> torch.Tensor:
        """Return the same logits for each text."""
        return state["logits"].repeat(len(batch), 1)
