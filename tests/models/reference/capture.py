"""Whether a CUDA graph can hold a family's pass, found without a GPU.

The encoder stands on the device ``meta``, which has shapes and no values: what reads a value there
fails, and what is copied there from the CPU is seen. Both are what no graph can hold; a number on
the CPU that an operation takes beside tensors of the device is none, as it is read at once.
"""

from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stream.models.encoder import Encoder
from tests.models.reference.check import made_batch


class _Copies(TorchDispatchMode):
    """Notes each operation that copies between the CPU and the device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Execute an operation."""
        output = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, output))
        devices = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor)}
        if "copy" in str(func) and devices == {"cpu", "meta"}:
            self.found.append(str(func))
        return output


def copies_of_a_pass(encoder: Encoder) -> list[str]:
    """Return the copies between the CPU and the device in a forward and a backward pass.

    Raises:
        RuntimeError: something reads a value on the device.
    """
    encoder = encoder.to("meta").train()
    batch, copies = made_batch().to(torch.device("meta")), _Copies()
    # transformers reads values of masks, but not while a graph is captured.
    with patch("torch.cuda.is_current_stream_capturing", return_value=True), copies:
        encoder.states(batch)[0].sum().backward()
    return copies.found
