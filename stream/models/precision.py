"""How a model's encoder computes: itself in float32, or by a copy of it in bf16."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder
from stream.models.repeatable_attention import repeatable_attention

# Without cuDNN's, which takes 0.1 to 0.2 s to plan for every new shape of a batch, and whose
# gradients for long texts do not repeat.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Precision:
    """What computes for an encoder, and has the gradients of a step until they are the encoder's.

    Attributes:
        in_bf16: whether a copy in bf16 computes.
    """

    def __init__(self, encoder: Encoder, *, in_bf16: bool):
        """Take an encoder in float32; its copy is made when it is needed first."""
        self.in_bf16 = in_bf16
        self._encoder = encoder
        self._half: Bf16Encoder | None = None
        self._computes: Bf16Encoder | None = None
        self._took = False

    @property
    def bf16_encoder(self) -> Encoder | None:
        """The bf16 copy that computes; None where there is none yet."""
        return None if self._half is None else self._half.encoder

    def sync_copy(self) -> None:
        """Note that weights changed, or which ones are trained; before every task."""
        if self.in_bf16:
            self._half = self._half or Bf16Encoder(self._encoder)
            self._half.read_all()

    def encoder_now(self) -> Encoder:
        """Return what computes at this place of the program, with the weights as they are."""
        if self._computes is None:
            return self._encoder
        if not self._took:  # not before: a learner may change weights for the step alone
            self._computes.read_trained()
            self._took = True
        return self._computes.encoder

    @contextmanager
    def computing(self, share: Callable[[Encoder], None]) -> Iterator[None]:
        """Compute in this precision inside the block; with gradients, those of one step.

        Args:
            share: is called behind the block with the encoder that computed, whose gradients are
                not the original's yet.
        """
        on_gpu = next(self._encoder.parameters()).is_cuda
        repeats = repeatable_attention() if on_gpu and torch.is_grad_enabled() else nullcontext()
        if not self.in_bf16:
            with repeats:
                yield
            share(self._encoder)
            return
        if self._half is None or not torch.is_grad_enabled():
            self.sync_copy()
        assert self._half is not None
        self._computes, self._took = self._half, not torch.is_grad_enabled()
        try:
            with sdpa_kernel(ATTENTION), repeats:
                yield
        finally:
            self._computes = None
        self._half.make_gradients()  # all that are shared have to be there
        share(self._half.encoder)
        if torch.is_grad_enabled():
            self._half.give_gradients()
