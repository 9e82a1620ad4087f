"""The nearest mean of a class, among the classes of all tasks; its task serves the text.

Nearest class mean (Mensink et al. 2013, "Distance-based image classification"; iCaRL, Rebuffi et
al. 2017, arXiv 1611.07725, eq. 2) in the space of a frozen pretrained encoder, where it is the
simplest of the class-incremental baselines (RanPAC, McDonnell et al. 2023, arXiv 2307.02251). Here
it only finds the task; the task's own head answers. The distance is Euclidean. A regression and a
span task count as one class.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from stream.routing.base import FeatureRouter
from stream.routing.statistics import ClassStatistics


class ClassMean(FeatureRouter):
    """Keeps the mean of every class: ``means`` float64 [C, D] of each task."""

    def learn(self, task: str, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        """Keep the means of the task's classes that have a training row."""
        found = ClassStatistics(scatter=False)
        for features, classes in parts:
            found.add(features, classes)
        self.tasks[task] = {"means": torch.from_numpy(found.means)}

    def costs(self, features: np.ndarray, tasks: Sequence[str]) -> np.ndarray:
        """Return the squared distance to the nearest mean of each task."""
        return nearest(features, [self.tasks[task]["means"].numpy() for task in tasks])


def nearest(features: np.ndarray, means: Sequence[np.ndarray]) -> np.ndarray:
    """Return the squared distance to the nearest of each group of means, float64 [N, T].

    Each group is computed by itself, so that what it gives does not depend on the others.

    Args:
        features: float64 [N, D].
        means: float64 [C, D] of each of T groups.
    """
    own = (features**2).sum(axis=1)[:, None]  # [N, 1]
    costs = [(own - 2 * features @ m.T + (m**2).sum(axis=1)).min(axis=1) for m in means]
    return np.stack(costs, axis=1)
