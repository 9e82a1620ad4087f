"""The nearest vector that opposes none of several others: gradients as vectors, many tensors each.

k vectors; all tensors of one together are that vector, None among them is 0.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import nnls

BLOCK = 2**20  # entries of each vector that are in float64 at once

Vector = Sequence[torch.Tensor | None]


def turn_aside(gradient: Vector, others: Sequence[Vector], margin: float) -> None:
    """Change ``gradient`` in place to the nearest vector that opposes none of ``others``.

    It stays where it opposes none. Inner products are summed in float64.

    Args:
        gradient: g.
        others: the vectors g_k.
        margin: as for `weights_of`.
    """
    products = inner_products([*others, gradient])
    if not np.isfinite(products).all() or (products[-1, :-1] >= 0).all():
        return  # the loop stops at a loss that is not finite
    weights = weights_of(products, margin)
    with torch.no_grad():
        for place, tensor in enumerate(gradient):
            for weight, other in zip(weights.tolist(), others, strict=True):
                part = other[place]
                if tensor is not None and part is not None:
                    tensor.add_(part, alpha=weight)


def inner_products(vectors: Sequence[Vector]) -> np.ndarray:
    """Return the inner product of each vector with each, float64 [k, k]."""
    total: torch.Tensor | None = None
    for tensors in zip(*vectors, strict=True):
        there = [tensor for tensor in tensors if tensor is not None]
        if not there:
            continue
        zero = torch.zeros(()).to(there[0]).expand(there[0].numel())
        rows = [zero if tensor is None else tensor.detach().flatten() for tensor in tensors]
        for start in range(0, there[0].numel(), BLOCK):
            block = torch.stack([row[start : start + BLOCK] for row in rows]).double()
            products = block @ block.T
            total = products if total is None else total + products
    return np.zeros((len(vectors),) * 2) if total is None else total.cpu().numpy()


def weights_of(products: np.ndarray, margin: float) -> np.ndarray:
    """Return v >= ``margin`` [k] that minimizes |g + sum_k v_k g_k|^2.

    That is the dual of the nearest vector z to g with z.g_k >= 0 for all k, and z the sum, where
    ``margin`` is 0 (Lopez-Paz & Ranzato 2017, arXiv 1706.08840, equations 11 and 12).

    Args:
        products: inner products of the g_k, and behind them g, float64 [k + 1, k + 1].
        margin: the least weight.
    """
    values, axes = np.linalg.eigh(products)
    # k + 1 vectors of k + 1 entries each, as columns, with the same inner products.
    vectors = np.sqrt(values.clip(min=0))[:, None] * axes.T
    others, gradient = vectors[:, :-1], vectors[:, -1]
    more, _ = nnls(others, -gradient - margin * others.sum(1), maxiter=100 * len(products))
    return margin + more
