"""An encoder that computes in bf16 for another one that keeps its weights in float32."""

import copy
from collections.abc import Collection, Sequence

import torch
from torch import nn

from stream.models.encoder import Encoder
from stream.models.gathered_gradients import GatheredGradients
from stream.models.joined_maps import join_attention_maps


def copy_all(into: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """Copy many tensors in place, in few kernels; types may differ."""
    if into:
        with torch.no_grad():
            torch._foreach_copy_(list(into), list(values))  # pyright: ignore[reportPrivateImportUsage]


def to_bf16(module: nn.Module, names: Collection[str] | None = None) -> None:
    """Store parameters in bf16, those called ``names`` or all; those in 4 bits stay as they are.

    Buffers keep their type: those of rotary positions would be turned by whole circles too far or
    too little, at the end of a long text.
    """
    for name, parameter in module.named_parameters():
        if parameter.is_floating_point() and (names is None or name in names):
            parameter.data = parameter.data.to(torch.bfloat16)


class Bf16Encoder:
    """A bf16 copy of an encoder, which computes while the float32 original is what is learned.

    Casting every weight where it is used, as autocast does, is half of all kernels of a step. Here
    what is trained is copied at once before, and its gradients at once after. What the original
    stores in bf16 or 4 bits itself (`to_bf16`, `four_bit`) the two share. On a GPU, which waits for
    the start of every kernel, products are put together where they can be.
    """

    def __init__(self, original: Encoder, *, together: bool | None = None):
        """Copy an encoder into which methods have inserted all that they insert.

        Args:
            original: the encoder, in float32.
            together: whether products are put together; by default on a GPU.
        """
        self._original = original
        same = {id(p): p for p in original.parameters() if p.dtype != torch.float32}
        self.encoder = copy.deepcopy(original, same)
        to_bf16(self.encoder)
        if together is None:
            together = next(original.parameters()).is_cuda
        self._gathered: GatheredGradients | None = None
        if together:
            join_attention_maps(self.encoder)
            self._gathered = GatheredGradients(inserted_modules(self.encoder))

    def read_all(self) -> None:
        """Take all weights, and note what is trained from now on."""
        self._take_mode()
        both = zip(self._original.parameters(), self.encoder.parameters(), strict=True)
        pairs = [(original, half) for original, half in both if half is not original]
        copy_all([half for _, half in pairs], [original for original, _ in pairs])
        for original, half in pairs:
            half.requires_grad_(original.requires_grad)
        self._trained = [original for original, _ in pairs if original.requires_grad]
        self._halves = [half for _, half in pairs if half.requires_grad]

    def _take_mode(self) -> None:
        """Learn or serve, as the original does; walking through all modules takes a while."""
        if self.encoder.training != self._original.training:
            self.encoder.train(self._original.training)

    def read_trained(self) -> None:
        """Take the weights that are trained; an evaluation in between left its mode behind."""
        self._take_mode()
        for half in self._halves:
            half.grad = None
        if self._gathered is not None:
            self._gathered.forget()
        copy_all(self._halves, self._trained)

    def give_gradients(self) -> None:
        """Give the gradients to the original, in float32, on top of any that it has."""
        if self._gathered is not None:
            self._gathered.make()
        gradients, halves, before = [], [], []
        for original, half in zip(self._trained, self._halves, strict=True):
            if half.grad is not None:
                earlier, original.grad = original.grad, torch.empty_like(original)
                gradients.append(original.grad)
                halves.append(half.grad)
                if earlier is not None:
                    before.append((original.grad, earlier))
        copy_all(gradients, halves)
        for gradient, earlier in before:  # of what reads weights besides the encoder
            gradient.add_(earlier)


def inserted_modules(encoder: Encoder) -> list[nn.Module]:
    """Return the modules whose own parameters did not come with the encoder."""
    return [
        module
        for path, module in encoder.named_modules()
        if any(f"{path}.{name}" not in encoder.pretrained for name in module._parameters)
    ]
