"""The hard-concrete distribution: gates in [0, 1] that are often exactly 0 or 1.

Louizos et al. 2018 (arXiv 1712.01312), equations 10 to 12, with temperature 1: for uniform u,
s = sigmoid(log u - log(1 - u) + a) (r - l) + l and z = min(1, max(0, s)); l = -1.5 and r = 1.5 are
those of Guo et al. 2021 (arXiv 2012.07463).
"""

import math

import torch
from torch import nn

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


class Gates(nn.Module):
    """A gate for every entry of a tensor, and if ``structured`` one for all of it, multiplied.

    ``entries`` is flat, as what does not decay is (`stream.training.schedule`).
    """

    def __init__(self, like: torch.Tensor, *, structured: bool):
        super().__init__()
        self._shape = like.shape
        self.entries = nn.Parameter(torch.empty_like(like.flatten()))
        whole = torch.empty((), device=like.device)
        self.whole = nn.Parameter(whole) if structured else None

    def reset(self, start: float) -> None:
        """Give every gate the same ``a``."""
        with torch.no_grad():
            for a in self.parameters():
                a.fill_(start)

    def draw(self, *, middle: bool = False) -> torch.Tensor:
        """Return z of every entry, drawn anew or at its median (u = 1/2)."""
        self._drawn = []
        for a in self.parameters():
            u = torch.full_like(a, 0.5) if middle else torch.rand_like(a).clamp(1e-6, 1 - 1e-6)
            self._drawn.append(gate(a.detach(), u))
        zs = [z for z, _ in self._drawn]
        return (zs[0] if len(zs) == 1 else zs[0] * zs[1]).view(self._shape)

    def expected(self) -> torch.Tensor:
        """Return the expected number of entries that are not 0."""
        opened = expected_open(self.entries)
        return (opened if self.whole is None else opened * expected_open(self.whole)).sum()

    def pass_on(self, gradient: torch.Tensor) -> None:
        """Add to the gradients of ``a``, from the gradient by the z that were drawn last."""
        z, slope = self._drawn[0]
        gradient = gradient.reshape(z.shape)
        if self.whole is None:
            _add(self.entries, gradient * slope)
            return
        whole, whole_slope = self._drawn[1]
        _add(self.entries, gradient * slope * whole)
        _add(self.whole, (gradient * z).sum() * whole_slope)

    def scale_gradients(self, factor: float) -> None:
        """Multiply the gradients of ``a``."""
        for a in self.parameters():
            if a.grad is not None:
                a.grad.mul_(factor)


def _add(a: nn.Parameter, gradient: torch.Tensor) -> None:
    """Add to a gradient that there may be already."""
    a.grad = gradient if a.grad is None else a.grad + gradient
