"""The task whose own outputs are the most certain, by their entropy.

SupSup (Wortsman et al. 2020, arXiv 2006.14769) infers the task by the entropy of the
outputs, there by gradients over a mixture of all tasks at once; here every task answers, and the
entropies are compared. Tasks differ in the number K of their classes, so an entropy is divided by
log K, the most that it can be. Scores and spans have no such entropy: `RouterConfig.check`.
"""

import numpy as np
from scipy.special import log_softmax

from stream.routing.base import OutputRouter


class Entropy(OutputRouter):
    """Takes the task of the lowest normalized entropy; keeps nothing."""

    def cost(self, logits: np.ndarray) -> np.ndarray:
        """Return -sum_k p_k log p_k / log K, float64 [N] in [0, 1]."""
        logs = log_softmax(logits, axis=1)
        return -(np.exp(logs) * logs).sum(axis=1) / np.log(logits.shape[1])
