"""A residual adapter with a LayerNorm of its own behind every layer, isolated per task.

Bapna & Firat 2019 (arXiv 1909.08478), section 3.1: y = h + U relu(D LN(h)), h the output of the
whole layer, behind its last LayerNorm. The encoder is frozen, LayerNorms too. Deviation: first
weights are near 0, so that the adapter starts near the identity; the paper does not give them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import Architecture, Bottleneck
from stream.models.places import SubLayer


class _Behind:
    """An adapter behind one use of a layer."""

    def __init__(self, place: SubLayer, architecture: Architecture):
        self._adapter = Bottleneck(architecture)
        self._uses, self._use = place.uses, place.layer
        place.whole.add_module(place.named("adapter"), self._adapter)
        place.whole.register_forward_hook(self._adapt)

    def _adapt(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        """Return what stands in place of the layer's output, hidden states [B, L, D] first."""
        del module, inputs
        if self._uses is not None and self._uses.current != self._use:
            return output
        adapter = self._adapter
        return (adapter(output[0]), *output[1:]) if isinstance(output, tuple) else adapter(output)


@dataclass
class Bapna(Learner):
    """Train an adapter behind every layer.

    An adapter is a bottleneck with a LayerNorm of its own; a head is trained with them.

    Attributes:
        size: units of a bottleneck.
        init_std: the standard deviation of the first weights.
    """

    lr: float = 4e-3
    size: int = setting(64, at_least(1, WIDEST))
    init_std: float = setting(1e-2, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Bapna & Firat 2019, arXiv 1909.08478",
        stores="adapters, head",
        parameter_isolation=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook an adapter to every layer."""
        architecture = Architecture(
            encoder.width, self.size, "relu", norm="layer", init_std=self.init_std
        )
        for place in encoder.sublayers():
            if place.position == "feedforward":
                _Behind(place, architecture)
