"""A grid: every combination of some values, and on beyond its ends while the best lies there."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from stream.config.setting import Settings
from stream.errors import require
from stream.tuning.record import LearnerRecord
from stream.tuning.space import Point, Space, is_numeric, step_beyond

INSIDE = "the best lies inside what was tried"
NO_SCORE = "no trial has a score"


class Grid:
    """The grid of one learner.

    A setting's end is reached where its value in the best trial is the least or the largest of all
    that were tried. Then the value beyond it is tried, with the others as they are in the best
    trial. So it goes on until each neighbour of the best trial, one setting a step away, was tried,
    the setting's range ends, or no trial is left.

    Args:
        space: lists of values by the names of settings.
        learner: the learner with valid settings.
        most: how many trials there may be.
        sign: 1 if a higher score is better, -1 if a lower one is.

    Raises:
        UserError: the grid alone has more trials.
    """

    origin = "edge"

    def __init__(self, space: Space, learner: Settings, most: int, sign: int):
        self._lists: dict[str, Sequence[Any]] = {k: v for k, v in space.items() if v}  # type: ignore[misc]
        self._learner, self._most, self._sign = learner, most, sign
        self._numeric = [key for key, values in space.items() if is_numeric(values)]
        self._points = [
            dict(zip(self._lists, v, strict=True)) for v in product(*self._lists.values())
        ]
        name: Any = learner.name  # type: ignore[attr-defined]
        told = f"the grid of {name} has {len(self._points)} trials, more than tune.trials={most}"
        require(len(self._points) <= most, told)

    def first(self) -> list[Point]:
        """Return every combination."""
        return self._points

    def more(self, so_far: LearnerRecord) -> list[Point]:
        """Return what to try next, nothing at the end; note in ``so_far`` how settings ended."""
        found, so_far.ends = [], {}
        best = so_far.best_of(self._sign)
        if best is None:
            so_far.ends = dict.fromkeys(self._numeric, NO_SCORE)
            return []
        for key in self._numeric:
            so_far.ends[key] = INSIDE
            for value in self._neighbours(key, best.settings, so_far):
                left = self._most - len(so_far.trials) - len(found)
                if isinstance(value, str) or not left:
                    spent = f"tune.trials={self._most} are used up"
                    so_far.ends[key] = f"at an end: {value if isinstance(value, str) else spent}"
                else:
                    found.append({**best.settings, key: value})
        return found

    def _neighbours(self, key: str, best: Point, so_far: LearnerRecord) -> Iterator[float | str]:
        """Yield the values beside that of the best trial that were not tried with its others.

        Where the best lies at an end, that is the value beyond it, or why there is none.
        """
        points = [trial.settings for trial in so_far.trials]
        values, own = {point[key] for point in points}, best[key]
        below = [value for value in values if value < own]
        above = [value for value in values if value > own]
        for sign, tried in ((-1, max(below, default=None)), (1, min(above, default=None))):
            beyond = tried is None
            given, learner = self._lists[key], self._learner
            value = step_beyond(given, own, sign, key, learner) if beyond else tried
            if isinstance(value, str) or {**best, key: value} not in points:
                yield value
