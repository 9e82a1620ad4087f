"""The Pareto front: who scores most for what it takes."""

import math
from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return which points are on the front, cheapest first.

    A point is on it if no other one costs at most as much and scores at least as high, one of the
    two strictly.

    Args:
        points: (cost, score) of each; with NaN in it a point is not on the front.

    >>> pareto_front([(1, 0.5), (2, 0.4), (3, 0.7), (3, 0.6)])
    [0, 2]
    """
    known = {n: point for n, point in enumerate(points) if not any(map(math.isnan, point))}

    def is_beaten(point: tuple[float, float]) -> bool:
        cost, score = point
        return any(c <= cost and s >= score and (c, s) != point for c, s in known.values())

    front = [n for n, point in known.items() if not is_beaten(point)]
    return sorted(front, key=lambda n: known[n])
