"""The magnitudes of linear maps' outputs, noted while they compute.

B examples, L tokens, D_out the width of a map's output.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn


class Magnitudes:
    """How large each output of some maps is, as a share of all outputs of its map.

    Of one token with outputs h, output i has the share |h_i| / sum_j |h_j|. What is noted is the
    mean over the tokens of a batch. Copies of the encoder (`stream.models.bf16`) note into the
    same object.

    Attributes:
        shares: by the map's name, the shares [D_out] of the batch that was noted last; their sum
            over the uses of a map that is used several times.
    """

    def __init__(self) -> None:
        self.shares: dict[str, torch.Tensor] = {}
        self._tokens: torch.Tensor | None = None  # [B, L]; None while nothing is noted
        self._real: torch.Tensor | None = None  # [B]; None if all texts are

    def __deepcopy__(self, memo: object) -> "Magnitudes":
        """Return the same object."""
        return self

    def watch(self, name: str, linear: nn.Module) -> None:
        """Note the outputs of a map from now on, inside `noting` alone."""
        linear.register_forward_hook(partial(self._note, name))

    @contextmanager
    def noting(self, tokens: torch.Tensor, real: torch.Tensor | None = None) -> Iterator[None]:
        """Note the maps that compute inside the block.

        Args:
            tokens: [B, L], 1 where there is a token and 0 where there is padding.
            real: which texts count, bool [B]; the others only fill up the batch. None if all do.
        """
        self.shares.clear()
        self._tokens = tokens if real is None else tokens * real[:, None]
        self._real = real
        try:
            yield
        finally:
            self._tokens = self._real = None

    def _note(self, name: str, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        """Note one output [B, L, D_out]; or [..., D_out] of a map that reads no tokens.

        That is one vector a text, or the embeddings of distances.
        """
        del module, inputs
        if self._tokens is None:
            return
        sizes = output.detach().float().abs()
        shares = sizes / sizes.sum(-1, keepdim=True).clamp(torch.finfo(sizes.dtype).tiny)
        if shares.shape[:-1] == self._tokens.shape:
            counts = self._tokens[..., None].to(shares.dtype)
            noted = (shares * counts).sum((0, 1)) / counts.sum()
        elif self._real is not None and shares.shape[:-1] == self._real.shape:
            noted = (shares * self._real[:, None]).sum(0) / self._real.sum()
        else:
            noted = shares.flatten(0, -2).mean(0)
        earlier = self.shares.get(name)
        self.shares[name] = noted if earlier is None else earlier + noted
