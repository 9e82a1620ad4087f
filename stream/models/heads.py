"""The linear heads that answer tasks, and what they read.

B examples, L tokens, D width, K outputs of a task's head.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Head(nn.Linear):
    """A linear map D -> K of a task's ``outputs``; K may be more while it learns.

    Rows behind the task's own have weight 0 and a bias so low that their probability is exactly 0
    in float32. So they change no loss and get no gradient.
    """

    NEVER = -1e9

    def __init__(self, width: int, outputs: int, room: int | None = None):
        super().__init__(width, room or outputs)
        self.outputs = outputs

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map features [..., D] to the logits: [..., K] while learning, else [..., outputs]."""
        logits = super().forward(input)
        return logits if self.training else logits[..., : self.outputs]

    def state(self) -> dict[str, torch.Tensor]:
        """Return the task's own rows of ``weight`` and ``bias``."""
        return {name: p.detach()[: self.outputs] for name, p in self.named_parameters()}

    def take(self, other: "Head") -> None:
        """Take the rows of another task's head that has at most as many."""
        self.outputs = other.outputs
        with torch.no_grad():
            self.weight.zero_()
            self.bias.fill_(self.NEVER)
            for name, rows in self.state().items():
                rows.copy_(other.state()[name])


class SharedHead(Head):
    """One linear map for the ``total`` classes of a stream, with a row for each that was met.

    A class that is not met has no weights at all, so nothing can change them before; its logit is
    so low that its probability is exactly 0 in float32.
    """

    def __init__(self, rows: torch.Tensor, total: int):
        """Start with the first ``rows`` [M, D] of the classes met, whose biases are 0."""
        met, width = rows.shape
        super().__init__(width, met)
        self.total = total
        self.weight = nn.Parameter(rows)
        self.bias = nn.Parameter(torch.zeros_like(rows[:, 0]))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map features [..., D] to the logits: [..., total] while learning, else [..., M]."""
        logits = functional.linear(input, self.weight, self.bias)
        if not self.training:
            return logits
        return functional.pad(logits, (0, self.total - self.outputs), value=self.NEVER)

    def grown(self, rows: torch.Tensor) -> "SharedHead":
        """Return a head with ``rows`` [more, D] behind its own, for classes that are met now."""
        head = SharedHead(torch.cat([self.weight.detach(), rows]), self.total)
        with torch.no_grad():
            head.bias[: self.outputs] = self.bias
        return head


class States(NamedTuple):
    """What heads read: float32 [B, D] behind a dropout, [B, L, D] a token, and the mask [B, L]."""

    texts: torch.Tensor
    tokens: torch.Tensor
    mask: torch.Tensor

    def of(self, rows: slice) -> "States":
        """Return those of some rows."""
        if rows.start == 0 and rows.stop == len(self.texts):  # a slice goes back in two kernels
            return self
        return States(*(tensor[rows] for tensor in self))


def joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a task's logits of several batches as one tensor; of spans, as wide as the widest."""
    most = max(part.shape[1] for part in parts)
    if any(part.shape[1] < most for part in parts):
        parts = [functional.pad(p, (0, most - p.shape[1]), value=Head.NEVER) for p in parts]
    return torch.cat(list(parts))
