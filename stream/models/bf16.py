"""An encoder that computes in bf16 for another one that keeps its weights in float32."""

import copy
from collections.abc import Sequence

import torch

from stream.models.encoder import Encoder


def copy_all(into: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """Copy many tensors in place, in few kernels; types may differ."""
    if into:
        with torch.no_grad():
            torch._foreach_copy_(list(into), list(values))  # pyright: ignore[reportPrivateImportUsage]


def rounded(encoder: Encoder) -> Encoder:
    """Round an encoder to bf16 in place, but for its constants, and return it.

    transformers loads encoders so: in bf16, rotary frequencies would turn late tokens by angles
    that are wrong by whole radians.
    """
    constants = {name: encoder.get_buffer(name) for name in encoder.constants}
    encoder.to(torch.bfloat16)
    for name, values in constants.items():
        path, _, last = name.rpartition(".")
        setattr(encoder.get_submodule(path), last, values)
    return encoder


class Bf16Encoder:
    """A bf16 copy of an encoder, which computes while the float32 original is what is learned.

    Casting every weight where it is used, as autocast does, is half of all kernels of a step. Here
    what is trained is copied at once before, and its gradients at once after.
    """

    def __init__(self, original: Encoder):
        self._original = original
        self.encoder = rounded(copy.deepcopy(original))

    def read_all(self) -> None:
        """Take all weights, and note what is trained from now on."""
        self._take_mode()
        originals, halves = list(self._original.parameters()), list(self.encoder.parameters())
        copy_all(halves, originals)
        pairs = list(zip(originals, halves, strict=True))
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
        copy_all(self._halves, self._trained)

    def give_gradients(self) -> None:
        """Give the gradients to the original, in float32, on top of any that it has."""
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
