"""Which rows of a task are worth a place in a buffer: even quotas, herding, a reservoir.

N rows, D width of the encoder.
"""

import numpy as np


def even_quotas(sizes: np.ndarray, budget: int, generator: np.random.Generator) -> np.ndarray:
    """Return how many rows each set gives, int64: as even as the sets' sizes allow.

    A set with fewer rows gives all, and the others share what is left of the budget. What cannot
    be divided goes to sets that are drawn.

    Args:
        sizes: rows of each set.
        budget: rows in all.
        generator: draws which sets give one row more.
    """
    quotas = np.zeros(len(sizes), np.int64)
    left = min(budget, int(sizes.sum()))
    while left:
        open_sets = np.flatnonzero(quotas < sizes)
        share = left // len(open_sets)
        if not share:
            quotas[generator.permutation(open_sets)[:left]] += 1
            break
        given = np.minimum(share, (sizes - quotas)[open_sets])
        quotas[open_sets] += given
        left -= int(given.sum())
    return quotas


def herded(features: np.ndarray, count: int) -> np.ndarray:
    """Return the rows [count] whose running mean follows the mean of all, the best first.

    Algorithm 4 of iCaRL (Rebuffi et al. 2017, arXiv 1611.07725): row k is the one with which the
    mean of the first k is nearest to the mean of all. As in the paper, vectors are scaled to length
    1, and so are all means. No row is taken twice, which the paper leaves open.

    Args:
        features: of the rows, float64 [N, D].
        count: how many are wanted, at most N.
    """
    vectors = _unit(features)
    mean = _unit(vectors.mean(0))
    total, chosen = np.zeros_like(mean), np.zeros(len(vectors), bool)
    order = np.empty(count, np.int64)
    for place in range(count):
        cosines = _unit(vectors + total) @ mean  # vectors of length 1: the nearest has the largest
        order[place] = np.where(chosen, -np.inf, cosines).argmax()
        chosen[order[place]] = True
        total += vectors[order[place]]
    return order


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [..., D] scaled to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


class Reservoir:
    """``size`` rows of all that went by, each with the same probability (Vitter 1985, algorithm R).

    Row n, from 0, takes place n while there are free ones; later a place is drawn among n + 1, and
    the row takes it if it is one of the ``size`` there are.
    """

    def __init__(self, size: int):
        self._size = size
        self._seen = 0
        self._places: list[tuple[str, int]] = []

    def pass_by(self, name: str, count: int, generator: np.random.Generator) -> None:
        """Let the rows 0 to ``count`` - 1 of a task go by."""
        number = np.arange(self._seen, self._seen + count)
        drawn = np.where(number < self._size, number, generator.integers(number + 1))
        for row in np.flatnonzero(drawn < self._size).tolist():
            place = int(drawn[row])
            self._places[place : place + 1] = [(name, row)]
        self._seen += count

    def rows_of(self, name: str) -> np.ndarray:
        """Return the rows of a task that are in it, int64, ascending."""
        return np.array(sorted(row for task, row in self._places if task == name), np.int64)
