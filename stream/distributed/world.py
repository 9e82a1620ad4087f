"""The ranks of a run as one group: what they agree on, average, and gather.

Gradients are averaged here by one call after each backward pass, and not by torch's
`DistributedDataParallel`: in bf16 the parameters that compute are those of a copy, a method may go
backward several times in a step, or not through the whole model, heads come and go with the tasks,
and a captured step is one CUDA graph, which holds the call.

CPU tensors and objects go by gloo, those on GPUs by NCCL.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from stream.distributed.launched import Place, launched
from stream.distributed.slices import rows_each

TIMEOUT = timedelta(hours=1)  # the first rank prepares data while the others wait
T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The ranks of this run; one alone where torchrun did not start it.

    Every rank calls the same methods in the same order.

    Attributes:
        rank: this process, from 0.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def now(cls) -> "World":
        """Return the group that this process is in."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls()
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def alone(self) -> bool:
        """Whether there is no other rank."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    @property
    def names(self) -> tuple[str | int, ...]:
        """What tells the random draws of this rank from those of the first; none of the first."""
        return () if self.is_first else ("rank", self.rank)

    def rows_each(self, rows: int) -> int:
        """Return how many rows of a batch of ``rows`` each rank gets."""
        return rows_each(rows, self.size)

    # What all ranks know afterwards.

    def any(self, *, told: bool) -> bool:
        """Return whether any rank is told so."""
        return bool(self.most(int(told)))

    def most(self, number: int) -> int:
        """Return the largest number that a rank has."""
        if self.alone:
            return number
        found = torch.tensor(number)
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return int(found)

    def from_first(self, value: T) -> T:
        """Return the value that the first rank has; it travels pickled."""
        if self.alone:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0)
        return values[0]

    def of_all(self, value: T) -> list[T]:
        """Return the value of each rank, in order; they travel pickled."""
        if self.alone:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    # Tensors.

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean over ranks of a tensor, entry by entry."""
        if self.alone:
            return values
        found = values.clone()
        _average(found, self.size)
        return found

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over ranks of a tensor, entry by entry."""
        return values if self.alone else self.mean(values) * self.size

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace the gradients of parameters by their means over ranks; those without stay so.

        All of a type are one message, of which they become parts.
        """
        by_type: dict[torch.dtype, list[torch.nn.Parameter]] = {}
        for parameter in parameters:
            if parameter.grad is not None:
                by_type.setdefault(parameter.grad.dtype, []).append(parameter)
        for alike in by_type.values():
            flat = torch.cat([p.grad.flatten() for p in alike if p.grad is not None])
            _average(flat, self.size)
            parts = flat.split([parameter.numel() for parameter in alike])
            for parameter, part in zip(alike, parts, strict=True):
                parameter.grad = part.view_as(parameter)

    def take_first(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give every rank the first one's values of these tensors, in place."""
        if self.alone:
            return
        for name in sorted(tensors):
            tensor = tensors[name].detach()
            whole = tensor.contiguous()
            distributed.broadcast(whole, src=0)
            if whole is not tensor:
                tensor.copy_(whole)

    def are_equal(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether all ranks have these tensors bit for bit, as sums of their bits tell."""
        if self.alone or not tensors:
            return True
        sums = torch.stack([_sum_of_bits(tensor) for tensor in tensors])
        least, most = sums.clone(), sums.clone()
        distributed.all_reduce(least, distributed.ReduceOp.MIN)
        distributed.all_reduce(most, distributed.ReduceOp.MAX)
        return torch.equal(least, most)


def _sum_of_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum of a tensor's memory as integers of 4 bytes, or of 1."""
    as_type = torch.int32 if tensor.element_size() % 4 == 0 and tensor.ndim else torch.uint8
    return tensor.detach().reshape(-1).contiguous().view(as_type).sum(dtype=torch.int64)


def _average(tensor: torch.Tensor, size: int) -> None:
    """Replace a tensor by its mean over all ranks."""
    if tensor.is_cuda:
        distributed.all_reduce(tensor, distributed.ReduceOp.AVG)
    else:  # gloo knows sums alone
        distributed.all_reduce(tensor, distributed.ReduceOp.SUM)
        tensor.div_(size)


@contextmanager
def joined_world(place: Place | None = None) -> Iterator[World]:
    """Be one of the ranks inside the block.

    Args:
        place: of this process; None takes what torchrun says.
    """
    place = place or launched()
    if place.alone:
        yield World()
        return
    backend, device = "gloo", None
    if torch.cuda.is_available() and distributed.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        device = torch.device("cuda", place.local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    distributed.init_process_group(backend, rank=place.rank, world_size=place.size, timeout=TIMEOUT)
    try:
        yield World.now()
    finally:
        distributed.destroy_process_group()
