"""The floor: the most frequent class, or the mean score, of a task's training rows.

The majority-class line of Houlsby et al. 2019 (arXiv 1902.00751), figure 6. The logits are the
logarithms of the class frequencies, so the order of the classes is that of their counts.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from stream.data.batch import Batch
from stream.data.majority import majority_logits
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
        return {"logits": torch.from_numpy(majority_logits(task).astype(np.float32))}

    def logits(self, state: Tensors, task: Task, batch: Batch) -> torch.Tensor:
        """Return the same logits for each text."""
        return state["logits"].repeat(len(batch), 1)
