"""Attention whose gradient has the same bits at every run.

On the way back through attention, torch splits the keys of a text over the parts of a GPU where
texts and heads are too few to use them all. These add to the gradient of the queries atomically, in
whatever order they arrive, unless torch computes deterministically. So the way back through
attention is asked to, and nothing else.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.nn import functional
from torch.overrides import TorchFunctionMode

from stream.models.deterministic import deterministic

KERNELS = "ScaledDotProduct"  # how the names of nodes begin that go back through such a kernel


@contextmanager
def repeatable_attention() -> Iterator[None]:
    """Let gradients of attention repeat inside the block, to which going back belongs, too."""
    with ExitStack() as asked, _Asking(asked):  # left in any case, wherever an error ends the step
        yield


class _Asking(TorchFunctionMode):
    """Has what goes back through attention enter `deterministic`, and leave it afterwards."""

    def __init__(self, asked: ExitStack):
        super().__init__()
        self._asked = asked

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function."""
        found = func(*args, **(kwargs or {}))
        if func is functional.scaled_dot_product_attention:
            node = found.grad_fn
            if node is not None and node.name().startswith(KERNELS):
                node.register_prehook(lambda gradients: self._asked.enter_context(deterministic()))
                node.register_hook(lambda inputs, outputs: self._asked.close())
        return found
