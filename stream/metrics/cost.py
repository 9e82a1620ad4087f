"""The cost of a learner: the efficiencies of Díaz-Rodríguez et al. 2018 (arXiv 1810.13166).

Each is at most 1; a higher value means a lower cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of a run, one entry per task that was learned.

    Attributes:
        train: all operations of learning the task.
        one_pass: the operations of one forward and backward pass over its training examples.
        epochs: the number of passes over these examples; the factor epsilon of CE.
    """

    train: Sequence[float]
    one_pass: Sequence[float]
    epochs: Sequence[float]


@dataclass(frozen=True)
class Storage:
    """What a run stores, in bytes, one entry per task that was learned.

    Attributes:
        model: everything needed to serve the tasks so far and to learn the next one (the ledger's
            ``stored_bytes``).
        buffer: the stored examples (the ledger's ``buffer_bytes``).
        data: the training data of all tasks of the stream together.
    """

    model: Sequence[float]
    buffer: Sequence[float]
    data: float


def model_size_efficiency(model: Sequence[float]) -> float | None:
    """MS = min(1, (1/k) sum_i Mem(theta_1) / Mem(theta_i)); None for no task.

    Díaz-Rodríguez et al. 2018. ``model`` has the size after each task, in bytes or parameters. The
    value is 1 for one task, and for a model that does not grow.

    >>> model_size_efficiency([100, 200])
    0.75
    """
    sizes = _one_per_task("model size", model)
    if not sizes.size:
        return None
    return min(1.0, float((sizes[0] / _positive("model size", sizes)).mean()))


def samples_storage_efficiency(buffer: Sequence[float], data: float) -> float | None:
    """SSS = 1 - min(1, (1/k) sum_i Mem(M_i) / Mem(D)); None for no task.

    Díaz-Rodríguez et al. 2018. ``buffer`` has the bytes of the stored examples after each task,
    ``data`` the bytes of all training data of the stream. The value is 1 without a buffer.

    >>> samples_storage_efficiency([100, 200], data=200)
    0.25
    """
    sizes = _one_per_task("buffer", buffer)
    if not sizes.size:
        return None
    _positive("training data", np.array([data]))
    return 1.0 - min(1.0, float(sizes.mean()) / data)


def computational_efficiency(flops: Flops) -> float | None:
    """CE = min(1, (1/k) sum_i Ops(one pass over Tr_i) epsilon_i / Ops(Tr_i)).

    Díaz-Rodríguez et al. 2018. epsilon_i is the number of passes over task i's examples (>= 1), so
    that 1 means: no operations besides training on the current task. None for no task, or if a
    task was learned without any operation.

    >>> computational_efficiency(Flops(train=[30, 60], one_pass=[10, 10], epochs=[3, 3]))
    0.75
    """
    spent, one_pass, epsilon = (
        _one_per_task(name, values)
        for name, values in (
            ("flops.train", flops.train),
            ("flops.one_pass", flops.one_pass),
            ("flops.epochs", flops.epochs),
        )
    )
    if not len(spent) == len(one_pass) == len(epsilon):
        raise ValueError(
            f"flops of {len(spent)}, {len(one_pass)} and {len(epsilon)} tasks do not match"
        )
    if not spent.size or (spent == 0).any():
        return None
    if (epsilon < 1).any():
        raise ValueError(f"the factor epsilon is at least 1, not {epsilon.min()}")
    return min(1.0, float((one_pass * epsilon / spent).mean()))


def _one_per_task(what: str, values: Sequence[float]) -> np.ndarray:
    """Return ``values`` as float64 [k]; raise ValueError if one is negative or NaN."""
    array = np.asarray(values, dtype=np.float64)
    if not (array >= 0).all():
        raise ValueError(f"{what} must not be negative: {list(values)}")
    return array


def _positive(what: str, values: np.ndarray) -> np.ndarray:
    """Return ``values``; raise ValueError unless all are above 0."""
    if not (values > 0).all():
        raise ValueError(f"{what} must be above 0: {values.tolist()}")
    return values
