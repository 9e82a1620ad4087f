"""Gradients averaged over ranks, most of them while the backward pass still goes on, or at its end.

The parameters of the encoder that computes are cut into buckets, in the reverse of the order in
which they are used. As soon as all gradients of a bucket are there, they are sent as one message;
so the links work beside the backward pass, also inside a CUDA graph. What is left (heads, and
whatever got a gradient that had none before) is sent when the pass is over. Buckets follow each
other in the same order on every rank.

That is what torch's `DistributedDataParallel` does, which cannot be used here: it wants one model
whose forward pass begins and whose backward pass ends a step, but in bf16 the parameters that
compute are those of a copy, methods go backward several times in a step, or through parts of the
model, heads come and go with the tasks, and a captured step runs no Python.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import distributed

BUCKET_BYTES = 2**25
Parameter = torch.nn.Parameter


class Sent(NamedTuple):
    """A message on its way: whose gradients it holds, one behind the other."""

    parameters: Sequence[Parameter]
    flat: torch.Tensor
    work: "distributed.Work | None"


class SharedGradients:
    """Averages the gradients of one model over ranks, pass by pass.

    Attributes:
        active: whether backward passes are over slices now; where they are not, nothing is sent.
    """

    def __init__(self, ranks: int, bucket_bytes: int | None = None) -> None:
        """Share among ``ranks``, in messages of about ``bucket_bytes``; 0 sends all at the end."""
        self.active = False
        self._ranks = ranks
        self._bytes = BUCKET_BYTES if bucket_bytes is None else bucket_bytes
        self._hooked: set[Parameter] = set()
        self._members: list[int] = []  # by identity: what has gradients, in order
        self._buckets: list[list[Parameter]] = []
        self._place: dict[Parameter, int] = {}
        self._missing: list[int] = []
        self._sent: list[Sent] = []

    def finish(self, early: Iterable[Parameter], others: Iterable[Parameter]) -> None:
        """Average all gradients, after a backward pass.

        Args:
            early: parameters that most gradients are of, in the order in which they are used.
            others: those besides; they may name some again.
        """
        early = list(early)
        done = {parameter for sent in self._sent for parameter in sent.parameters}
        waiting = dict.fromkeys(
            p for p in chain(early, others) if p.grad is not None and p not in done
        )
        by_type: dict[torch.dtype, list[Parameter]] = {}
        for parameter in waiting:
            assert parameter.grad is not None
            by_type.setdefault(parameter.grad.dtype, []).append(parameter)
        for alike in by_type.values():
            self._send(alike)
        for sent in self._sent:
            self._receive(sent)
        self._begin([parameter for parameter in early if parameter.grad is not None])

    def _begin(self, members: Sequence[Parameter]) -> None:
        """Get ready for the next pass, which gives ``members`` gradients as the last one did."""
        self._sent = []
        if self._bytes and (ids := [id(parameter) for parameter in members]) != self._members:
            self._members = ids
            self._buckets = self._cut(members)
            self._place = {p: place for place, bucket in enumerate(self._buckets) for p in bucket}
            for parameter in [p for p in members if p not in self._hooked]:
                parameter.register_post_accumulate_grad_hook(self._arrived)
                self._hooked.add(parameter)
        self._missing = [len(bucket) for bucket in self._buckets]

    def _cut(self, members: Sequence[Parameter]) -> list[list[Parameter]]:
        """Cut parameters into buckets of one type each, the last ones first."""
        buckets: list[list[Parameter]] = []
        room = 0
        for parameter in reversed(members):
            if not buckets or room <= 0 or buckets[-1][0].dtype != parameter.dtype:
                buckets.append([])
                room = self._bytes
            buckets[-1].append(parameter)
            room -= parameter.numel() * parameter.element_size()
        return buckets

    def _arrived(self, parameter: torch.Tensor) -> None:
        """Note that a gradient is there, and send the buckets that are whole, in order."""
        place = self._place.get(parameter) if self.active else None  # type: ignore[arg-type]
        if place is None:
            return
        self._missing[place] -= 1
        assert self._missing[place] >= 0, "two backward passes inside one `TaskModel.computing`"
        while len(self._sent) < len(self._buckets) and not self._missing[len(self._sent)]:
            self._send(self._buckets[len(self._sent)])

    def _send(self, parameters: Sequence[Parameter]) -> None:
        """Begin to add the gradients of parameters over ranks."""
        flat = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
        # gloo knows sums alone.
        how = distributed.ReduceOp.AVG if flat.is_cuda else distributed.ReduceOp.SUM
        self._sent.append(Sent(parameters, flat, distributed.all_reduce(flat, how, async_op=True)))

    def _receive(self, sent: Sent) -> None:
        """Make the gradients parts of a message that has been added."""
        if sent.work is not None:
            sent.work.wait()
        if not sent.flat.is_cuda:
            sent.flat.div_(self._ranks)
        parts = sent.flat.split([parameter.numel() for parameter in sent.parameters])
        for parameter, part in zip(sent.parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
