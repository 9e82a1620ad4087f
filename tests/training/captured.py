"""Captured against eager steps of a family, on a GPU; and what no graph can hold, without one."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from stream.data.batch import TokenBatch
from stream.learners.base import Learner
from stream.models.encoder import Encoder
from stream.training.captured import LOG
from tests.builders import made_task
from tests.models.tiny_families import family_encoder, without_dropout
from tests.training.test_engine import learned

READS = ("_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "equal")
"""Operations whose results, or their shapes, the CPU has to know before it can go on."""


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Collect what the engine says when it gives up capturing inside the block."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    listener = Listener(logging.WARNING)
    LOG.addHandler(listener)
    try:
        yield said
    finally:
        LOG.removeHandler(listener)


def compare(
    shape: str, make: Callable[[], Learner], *, half: bool
) -> tuple[list[float], list[float], str]:
    """Learn two tasks eagerly and captured, on the GPU.

    Args:
        shape: of `tests.models.tiny_families.FAMILIES`.
        make: makes the learner.
        half: compute in bf16, without dropout.

    Returns:
        The losses of eager steps, those of captured ones, and why they were executed eagerly from
        some step on; empty where they were replayed.
    """

    def encoder() -> Encoder:
        made = family_encoder(shape)
        return without_dropout(made) if half else made

    tasks = [made_task("a", 2, 16), made_task("d", 2, 16)]
    _, eager = learned(make, tasks, "eager", half=half, encoder=encoder)
    with refusals() as said:
        _, captured = learned(make, tasks, "captured", half=half, encoder=encoder)
    return [*chain(*eager)], [*chain(*captured)], " ".join(said)


class Watch(TorchDispatchMode):
    """Notes what a CUDA graph cannot hold: values the CPU asks for, and copies from the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        reads = name in READS and on_device(args[0])
        if reads or (name == "copy_" and on_device(args[0]) and not on_device(args[1])):
            self.found.append(name)
        if reads:
            raise ReadError(name)
        made = func(*args, **kwargs or {})
        if name == "_to_copy" and on_device(made) != on_device(args[0]):
            self.found.append(name)
        return made


class ReadError(Exception):
    """Ends a pass where the CPU asks for a value."""


def on_device(value: object) -> bool:
    """Whether a tensor is on the device that stands for a GPU: torch's, without numbers."""
    return isinstance(value, torch.Tensor) and value.device.type == "meta"


def on_the_cpu_side(encoder: Encoder) -> list[str]:
    """Return what of a pass forward and back no graph can hold, on tensors without numbers.

    transformers is told that a stream captures, as it would find out on a GPU.
    """
    for module in encoder.modules():
        for name, own in [*module.named_parameters(recurse=False)]:
            moved = nn.Parameter(own.detach().to("meta"), requires_grad=own.requires_grad)
            module.register_parameter(name, moved)
        for name, own in [*module.named_buffers(recurse=False)]:
            setattr(module, name, own.to("meta"))
    ids = torch.zeros(4, 16, dtype=torch.long, device="meta")
    batch = TokenBatch(ids, torch.ones_like(ids), torch.zeros_like(ids), ())
    with pytest.MonkeyPatch.context() as patch, Watch() as watch:
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        try:
            texts, _ = encoder.train().states(batch)
            texts.sum().backward()
        except ReadError:
            pass
    return watch.found
