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
    squares, toward = np.square(vectors).sum(1), vectors @ _unit(vectors.mean(0))
    chosen, order = np.zeros(len(vectors), bool), np.empty(count, np.int64)
    # Of the sum of the chosen rows: its product with each row, with the mean, and with itself.
    along, sum_toward, sum_square = np.zeros(len(vectors)), 0.0, 0.0
    for place in range(count):
        lengths = np.sqrt((squares + 2 * along + sum_square).clip(min=np.finfo(float).tiny))
        cosines = (toward + sum_toward) / lengths  # the nearest of length 1 has the largest
        best = int(np.where(chosen, -np.inf, cosines).argmax())
        chosen[best], order[place] = True, best
        sum_toward += toward[best]
        sum_square += squares[best] + 2 * along[best]
        along += vectors @ vectors[best]
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
