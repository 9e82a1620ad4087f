"""Tensors on their way between processes and to files: as bytes, on the CPU, without pickle."""

from collections.abc import Mapping
from typing import Any

import msgspec
import torch
from safetensors.torch import load, save

from stream.training.snapshot import FitSnapshot

Tensors = dict[str, torch.Tensor]


def packed(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Return named tensors as the bytes of a safetensors file."""
    return save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})


def unpacked(content: bytes) -> Tensors:
    """Return what was `packed`, on the CPU."""
    return load(content)


class PackedPosition(msgspec.Struct):
    """A `FitSnapshot` as bytes.

    Attributes:
        numbers: what it holds besides tensors, as JSON values.
        tensors: the others, `packed`.
    """

    numbers: dict[str, Any]
    tensors: bytes

    @classmethod
    def of(cls, snapshot: FitSnapshot) -> "PackedPosition":
        """Pack a snapshot."""
        return cls(snapshot.numbers(), packed(snapshot.tensors))

    def snapshot(self) -> FitSnapshot:
        """Return the snapshot."""
        return FitSnapshot(**self.numbers, tensors=unpacked(self.tensors))
