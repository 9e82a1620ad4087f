"""Gradient checkpointing: a layer keeps its input alone, and is computed again to go backward.

Chen et al. 2016, arXiv 1604.06174. transformers has it for some families alone, and in some of its
versions hooks are left out of what is computed again; here every layer is, with all its hooks.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from stream.models.places import Uses


def recompute_layers(layers: Iterable[nn.Module], uses: Uses | None = None) -> None:
    """Let layers compute again what going backward needs, with the same dropout.

    Names and parameters stay; only the class of a layer changes, so that a copy does it too.

    Args:
        layers: the Transformer layers.
        uses: counts their uses, if layers are used several times.
    """
    for layer in layers:
        layer.__class__ = _recomputed(type(layer))
        vars(layer)["counted"] = uses


@cache
def _recomputed(kind: type[nn.Module]) -> type[nn.Module]:
    """Return a class of layers that are computed again."""

    class Recomputed(kind):
        counted: Uses | None

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if not (self.training and torch.is_grad_enabled()):
                return super().__call__(*args, **kwargs)
            call, uses = super().__call__, self.counted
            before = 0 if uses is None else uses.current

            def compute(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
                if uses is not None:
                    uses.current = before  # the layer counts its use again
                return call(*args, **kwargs)

            # As two arguments: of named ones torch does not look on which device they draw.
            return checkpoint(compute, args, kwargs, use_reentrant=False)

    Recomputed.__name__ = Recomputed.__qualname__ = kind.__name__
    return Recomputed
