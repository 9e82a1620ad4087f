"""The task that is the most confident.

``softmax``: the largest probability (Hendrycks & Gimpel 2017, arXiv 1610.02136). It is at least
1/K, so that tasks of few classes are favoured where nothing is certain. ``energy``: the free energy
E = -log sum_k exp(f_k) of the logits f, at temperature 1 (Liu et al. 2020, arXiv 2010.03759);
it is not normalized, so that tasks trained longer or with a larger rate have lower ones.
"""

import numpy as np
from scipy.special import logsumexp, softmax

from stream.routing.base import OutputRouter


class Confidence(OutputRouter):
    """Takes the task of the largest probability, or of the lowest energy; keeps nothing."""

    def cost(self, logits: np.ndarray) -> np.ndarray:
        """Return minus the largest probability, or the free energy, float64 [N]."""
        if self.config.confidence == "energy":
            return -np.asarray(logsumexp(logits, axis=1))
        return -softmax(logits, axis=1).max(axis=1)
