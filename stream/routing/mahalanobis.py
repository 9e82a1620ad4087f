"""The nearest mean of a class under one covariance of all tasks.

Lee et al. 2018 (arXiv 1807.03888), eq. 1 and 2: Gaussians of the classes with means m_c and one
tied covariance S = (1/N) sum_c sum_{x in c} (x - m_c)(x - m_c)^T over the rows of all classes of
all tasks; the cost of a task is min_c (x - m_c)^T S^-1 (x - m_c) over its classes. Streaming LDA
(Hayes & Kanan 2020, arXiv 1909.01520) learns the same in a stream. S is shrunk towards the identity
as by Ledoit & Wolf (2004): (1 - a) S + a (tr S / D) I, with a fixed a = ``router.shrinkage``. Where
all rows of every class are equal, S is 0, and the identity stands in its place.

Deviations: Lee et al. detect inputs of other data sets with it, over several layers, and add noise
to the input; here it finds the task, in the last layer alone. Priors play no part. Means of earlier
tasks never change; the covariance is that of all rows so far, so the costs of earlier tasks do.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from scipy import linalg

from stream.routing.base import FeatureRouter
from stream.routing.class_mean import nearest
from stream.routing.statistics import ClassStatistics


class Mahalanobis(FeatureRouter):
    """Keeps the mean of every class, and one covariance.

    ``means`` float64 [C, D] of each task; of all together ``scatter`` float64 [D, D], which is N S,
    and ``rows`` int64 [], which is N.
    """

    def learn(self, task: str, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        """Keep the task's means; add its scatter."""
        found = ClassStatistics(scatter=True)
        for features, classes in parts:
            found.add(features, classes)
        self.tasks[task] = {"means": torch.from_numpy(found.means)}
        scatter, rows = torch.from_numpy(found.scatter), torch.tensor(found.rows)
        if self.shared:
            scatter, rows = self.shared["scatter"] + scatter, self.shared["rows"] + rows
        self.shared = {"scatter": scatter, "rows": rows}

    def covariance(self) -> np.ndarray:
        """Return the shrunk covariance, float64 [D, D]."""
        whole = self.shared["scatter"].numpy() / int(self.shared["rows"])
        share, identity = self.config.shrinkage, np.eye(len(whole))
        spread = np.trace(whole) / len(whole)
        return (1 - share) * whole + share * spread * identity if spread > 0 else identity

    def costs(self, features: np.ndarray, tasks: Sequence[str]) -> np.ndarray:
        """Return the squared Mahalanobis distance to the nearest mean of each task."""
        root = linalg.cholesky(self.covariance(), lower=True)

        def whitened(rows: np.ndarray) -> np.ndarray:  # [N, D]; distances become Euclidean
            return linalg.solve_triangular(root, rows.T, lower=True).T

        means = [whitened(self.tasks[task]["means"].numpy()) for task in tasks]
        return nearest(whitened(features), means)
