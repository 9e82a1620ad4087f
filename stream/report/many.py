"""What is shown of a stream with more tasks than a person can read one by one.

T is the number of tasks. Up to `MOST_NAMED` every task is named; of more, an axis names some at
equal distances, and a list those whose score changed most.
"""

import math

import numpy as np

MOST_NAMED = 60
AXIS_NAMES = 40  # on an axis of more tasks
LISTED = 24  # of more tasks
WIDEST = 12.0  # inches, of an axis of more tasks
MOST_POINTS = 500  # of a line over more tasks


def is_many(num_tasks: int) -> bool:
    """Return whether not every task is named."""
    return num_tasks > MOST_NAMED


def inches(num_tasks: int, each: float) -> float:
    """Return how long an axis of tasks is.

    Args:
        num_tasks: on the axis.
        each: inches a task, where each is named.
    """
    return WIDEST if is_many(num_tasks) else each * num_tasks


def named(num_tasks: int) -> list[int]:
    """Return the positions (from 0) of the tasks that an axis names: the first, the last, others.

    >>> named(3), named(100)[:3], named(1000)[-2:]
    ([0, 1, 2], [0, 4, 9], [974, 999])
    """
    if not is_many(num_tasks):
        return list(range(num_tasks))
    step = round_step(num_tasks, AXIS_NAMES)
    between = range(step - 1, num_tasks - 1 - step // 2, step)
    return [0, *(at for at in between if at), num_tasks - 1]


def round_step(num_tasks: int, parts: int) -> int:
    """Return a round number that divides tasks into at most so many parts.

    >>> [round_step(number, 40) for number in (61, 100, 1000, 10_000)]
    [2, 5, 25, 250]
    """
    exact = num_tasks / parts
    power = 10 ** math.floor(math.log10(exact))
    steps = (n * power for n in (1, 2, 2.5, 5, 10))
    return next(int(step) for step in steps if step >= exact and step == int(step))


def changed_most(last: np.ndarray) -> list[int]:
    """Return the positions of the tasks that are listed, in order of the stream.

    All of few tasks; of many those whose score changed most in size, the earlier of equal ones.

    Args:
        last: float64 [T], the last change of each task; NaN counts as none.
    """
    if not is_many(len(last)):
        return list(range(len(last)))
    size = -np.abs(np.nan_to_num(last))
    return sorted(np.argsort(size, kind="stable")[:LISTED].tolist())


def thinned(num_tasks: int) -> np.ndarray:
    """Return the rows at which a line over many tasks is drawn: all of few, the last one always."""
    step = math.ceil(num_tasks / MOST_POINTS) if is_many(num_tasks) else 1
    return np.unique([*range(0, num_tasks, step), num_tasks - 1])
