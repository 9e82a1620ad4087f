"""Gradients averaged over ranks when a backward pass is over, all of one type as one message.

torch's `DistributedDataParallel` cannot be used here: it wants one model whose forward pass begins
and whose backward pass ends a step, but in bf16 the parameters that compute are those of a copy,
methods go backward several times in a step, or through parts of the model, heads come and go with
the tasks, and a captured step runs no Python. Its way of sending gradients in buckets while the
backward pass goes on was tried: on two GPUs it was as fast (docs/how-to/several-gpus.md).
"""

from collections.abc import Iterable

import torch
from torch import distributed


class SharedGradients:
    """Averages the gradients of one model over ranks, pass by pass.

    Attributes:
        active: whether backward passes are over slices now; where they are not, nothing is sent.
    """

    def __init__(self, ranks: int) -> None:
        """Share among ``ranks``."""
        self.active = False
        self._ranks = ranks

    def finish(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Average all gradients of parameters, which may be named twice, after a backward pass."""
        by_type: dict[torch.dtype, list[torch.nn.Parameter]] = {}
        for parameter in dict.fromkeys(parameters):
            if parameter.grad is not None:
                by_type.setdefault(parameter.grad.dtype, []).append(parameter)
        for alike in by_type.values():
            self._average(alike)

    def _average(self, parameters: list[torch.nn.Parameter]) -> None:
        """Replace gradients of one type by their means over ranks."""
        flat = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
        if flat.is_cuda:
            distributed.all_reduce(flat, distributed.ReduceOp.AVG)
        else:  # gloo knows sums alone
            distributed.all_reduce(flat, distributed.ReduceOp.SUM)
            flat.div_(self._ranks)
        parts = flat.split([parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
