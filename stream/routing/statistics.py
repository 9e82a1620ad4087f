"""What one pass over rows leaves of their classes: counts, means, and the scatter within.

B rows at a time, C classes, D width. All in float64.
"""

import numpy as np


class ClassStatistics:
    """Counts [C], means [C, D] and scatter sum_c sum_{x in c} (x - mean_c)(x - mean_c)^T [D, D].

    Rows are added by the pairwise update of Chan, Golub & LeVeque (1979, Stanford STAN-CS-79-773):
    no sum of squares is ever taken of what is not centred, so nothing cancels.
    """

    def __init__(self, *, scatter: bool):
        """Start without a row; ``scatter`` says whether the scatter is wanted."""
        self._wanted = scatter
        self._counts = np.zeros(0, np.int64)
        self._means = np.zeros((0, 0))
        self._scatter = np.zeros((0, 0))

    def add(self, features: np.ndarray, classes: np.ndarray) -> None:
        """Add rows.

        Args:
            features: float64 [B, D].
            classes: int64 [B], from 0.
        """
        self._make_room(int(classes.max()) + 1, features.shape[1])
        counts = np.bincount(classes, minlength=len(self._counts))  # [C]
        sums = np.zeros_like(self._means)
        np.add.at(sums, classes, features)
        means = sums / np.maximum(counts, 1)[:, None]
        together = np.maximum(self._counts + counts, 1)
        change = np.where(counts[:, None] > 0, means - self._means, 0.0)  # [C, D]
        if self._wanted:
            centred = features - means[classes]
            weights = self._counts * counts / together
            self._scatter += centred.T @ centred + (change * weights[:, None]).T @ change
        self._means += change * (counts / together)[:, None]
        self._counts += counts

    def _make_room(self, classes: int, width: int) -> None:
        """Make room for as many classes."""
        if not self._means.size:
            self._means, self._scatter = np.zeros((0, width)), np.zeros((width, width))
        more = max(classes - len(self._counts), 0)
        self._counts = np.pad(self._counts, (0, more))
        self._means = np.pad(self._means, ((0, more), (0, 0)))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._counts.sum())

    @property
    def means(self) -> np.ndarray:
        """The mean of each class that has a row, float64 [C, D]."""
        return self._means[self._counts > 0]

    @property
    def scatter(self) -> np.ndarray:
        """The scatter within classes, float64 [D, D]."""
        return self._scatter
