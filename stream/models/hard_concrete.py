"""The hard-concrete distribution: gates in [0, 1] that are often exactly 0 or 1.

Louizos et al. 2018 (arXiv 1712.01312), equations 10 to 12, with temperature 1: for uniform u,
s = sigmoid(log u - log(1 - u) + a) (r - l) + l and z = min(1, max(0, s)); l = -1.5 and r = 1.5 are
those of Guo et al. 2021 (arXiv 2012.07463).
"""

import math

import torch

LOW, HIGH = -1.5, 1.5


def gate(a: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return gates for uniform ``u`` in (0, 1), and their derivatives by ``a``, of its shape."""
    opened = torch.sigmoid(torch.log(u) - torch.log1p(-u) + a)
    stretched = opened * (HIGH - LOW) + LOW
    inside = (stretched > 0) & (stretched < 1)
    return stretched.clamp(0, 1), opened * (1 - opened) * (HIGH - LOW) * inside


def expected_open(a: torch.Tensor) -> torch.Tensor:
    """Return the probability that each gate is not 0."""
    return torch.sigmoid(a - math.log(-LOW / HIGH))
