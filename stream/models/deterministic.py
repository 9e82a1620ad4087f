"""Computing deterministically, for the few operations of a step that have to be asked to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

FILLING: Any = torch.utils.deterministic  # new tensors, with NaN, so that none is read by mistake


@contextmanager
def deterministic() -> Iterator[None]:
    """Have torch compute deterministically inside the block, without filling new tensors.

    Raises:
        RuntimeError: an operation that torch cannot compute so, where it is computed.
    """
    mode, filled = torch.get_deterministic_debug_mode(), FILLING.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("error")
    FILLING.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        FILLING.fill_uninitialized_memory = filled
