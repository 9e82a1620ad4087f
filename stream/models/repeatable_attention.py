"""Attention whose gradient has the same bits at every run.

On the way back through attention, torch splits the keys of a text over the parts of a GPU where
texts and heads are too few to use them all. These add to the gradient of the queries atomically, in
whatever order they arrive, unless torch computes deterministically. So the way back through
attention is asked to, and nothing else.
"""

from types import TracebackType
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

FILLING: Any = torch.utils.deterministic  # new tensors, with NaN, so that none is read by mistake
KERNELS = "ScaledDotProduct"  # how the names of nodes begin that go back through such a kernel


class RepeatableAttention(TorchFunctionMode):
    """A block in which gradients of attention repeat; to go back belongs inside as well."""

    def __enter__(self) -> "RepeatableAttention":
        """Note how torch computes otherwise."""
        super().__enter__()
        self._before = torch.get_deterministic_debug_mode()
        self._filled = FILLING.fill_uninitialized_memory
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Compute as before, wherever an error ended the way back."""
        self._leave()
        super().__exit__(kind, error, trace)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function; let what goes back through attention repeat."""
        found = func(*args, **(kwargs or {}))
        if func is functional.scaled_dot_product_attention:
            node = found.grad_fn
            if node is not None and node.name().startswith(KERNELS):
                node.register_prehook(lambda gradients: self._enter())
                node.register_hook(lambda inputs, outputs: self._leave())
        return found

    def _enter(self) -> None:
        torch.set_deterministic_debug_mode("error")
        FILLING.fill_uninitialized_memory = False  # all of it is written

    def _leave(self) -> None:
        torch.set_deterministic_debug_mode(self._before)
        FILLING.fill_uninitialized_memory = self._filled
