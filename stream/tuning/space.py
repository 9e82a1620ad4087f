"""What is searched of a learner: lists of values and intervals, by the names of its settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from stream.config.setting import Range, Settings, rules, types
from stream.errors import UserError, choose, require

ALIKE = 0.2  # two ratios of a grid count as the same if they differ by at most this fraction
AROUND = 3.0  # the ratio of the grid that is searched where none is given
DIGITS = 3  # of a value beyond the end of a grid

Point = dict[str, Any]
"""Values of a learner's settings, by name."""


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high``, both included.

    Attributes:
        low: the least.
        high: the largest.
        log: whether they are drawn on a logarithmic scale.
        whole: whether they are whole numbers.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False


Values = tuple[Any, ...] | Interval
Space = dict[str, Values]


def default_space(learner: Settings) -> Space:
    """Return what is searched where nothing is said: the learning rate around its default.

    Raises:
        UserError: a learner that reads no learning rate.
    """
    name: Any = learner.name  # type: ignore[attr-defined]
    said = rules(type(learner)).get("lr")
    require(
        said is not None and not said.idle,
        f"learner {name} has no learning rate to search; say what to try: {name}.FIELD=A,B",
    )
    middle: float = learner.lr  # type: ignore[attr-defined]
    return {"lr": (_rounded(middle / AROUND), middle, _rounded(middle * AROUND))}


def checked(space: Mapping[str, Values], learner: Settings) -> Space:
    """Return a space whose values are of the types of the learner's settings.

    Raises:
        UserError: a setting that the learner does not have, or a value that it refuses.
    """
    name: Any = learner.name  # type: ignore[attr-defined]
    found: Space = {}
    for key, values in space.items():
        choose(f"setting of learner {name}", key, [f.name for f in fields(learner)])
        if isinstance(values, Interval):
            require(
                _is_number(values.low) and values.low < values.high,
                f"learner.{key}: an interval goes from a number to a larger one",
            )
            require(not values.log or values.low > 0, f"learner.{key}: log(0) is no number")
            whole = types(type(learner))[key] is int
            ends = (int(values.low), int(values.high)) if whole else (values.low, values.high)
            found[key] = Interval(*ends, values.log, whole)
        else:
            found[key] = ends = tuple(_typed(value, key, learner) for value in values)
            same = len(set(map(repr, ends))) == len(ends)
            require(same, f"learner.{key} has a value twice: {', '.join(map(str, ends))}")
        for value in ends:
            replace(learner, **{key: value})
    return found


def step_beyond(
    grid: Sequence[float], edge: float, sign: int, key: str, learner: Settings
) -> float | str:
    """Return the next value beyond the end of a grid; why there is none, where there is none.

    It is as far from the end as the values of the grid are from each other, by their ratio where
    they have one in common (or are positive), else by their difference.

    Args:
        grid: the values that were given, at least two.
        edge: the last one that was tried in this direction.
        sign: 1 to go up, -1 to go down.
        key: the setting.
        learner: a learner with valid settings.
    """
    values = sorted(grid)
    ratio = _ratio(values)
    if ratio is None:
        value = edge + sign * (values[-1] - values[0]) / (len(values) - 1)
    else:
        value = edge * ratio**sign
    whole = all(isinstance(v, int) for v in grid)
    value = (round(value) if abs(value - edge) >= 1 else edge + sign) if whole else _rounded(value)
    valid = rules(type(learner))[key].valid
    if isinstance(valid, Range) and valid.problem(value):
        end = valid.high if sign > 0 else valid.low
        outside = valid.below if sign > 0 else valid.above
        if outside or end == edge or not math.isfinite(end):
            return f"the range of learner.{key} ends there"
        value = end
    try:
        replace(learner, **{key: value})
    except UserError as error:
        return str(error)
    return value


def _ratio(values: Sequence[float]) -> float | None:
    """Return the common ratio of ascending values, or their mean one; None if they have a step."""
    if values[0] <= 0:
        return None
    ratios = [b / a for a, b in pairwise(values)]
    steps = [b - a for a, b in pairwise(values)]
    even = max(steps) - min(steps) <= 1e-6 * max(steps)
    alike = max(ratios) <= (1 + ALIKE) * min(ratios)
    return None if even and not alike else (values[-1] / values[0]) ** (1 / len(ratios))


def _typed(value: Any, key: str, learner: Settings) -> Any:
    """Return a value of a setting; a whole number is a number where one is meant."""
    is_float = types(type(learner))[key] in (float, float | None)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_float and is_whole else value


def is_numeric(values: Values) -> bool:
    """Return whether a setting has several numbers, so that there may be better ones beyond."""
    return isinstance(values, tuple) and len(values) > 1 and all(map(_is_number, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    """Return a number with few digits.

    >>> _rounded(0.002 / 3), _rounded(5e-4 * 2)
    (0.000667, 0.001)
    """
    return float(f"{value:.{DIGITS}g}")
