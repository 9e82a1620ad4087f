"""Bottleneck adapters, isolated per task (Houlsby et al. 2019, arXiv 1902.00751, section 2).

Two adapters per layer, at the end of the attention and of the feed-forward sub-layer, each before
the residual addition. A task trains and owns its adapters, every LayerNorm (the embedding's too)
and its head; the rest of the encoder is frozen. Deviations: the head reads the [CLS] vector as the
paper says (its released code reads the frozen pooler: ``backbone.pooling=pooler``); AdamW corrects
its bias, the released optimizer does not.

What a learning rate may be falls with ``size`` and the encoder's width, since every weight moves by
about the rate in a step. Too high a one can end a task in a collapse: the adapters add the same
vector to all tokens, so that all texts become equal, and no gradient comes back. The default suits
size 64 and width 384 in a few hundred steps; ``select`` lets each task choose (the paper's way).

The options are the variants of section 3.6, which the paper found no better. Batch norm is not
among them: its running means are no parameters, so no task would own them, and padded positions
would enter them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import POSITIVE, WIDEST, at_least, setting
from stream.errors import require
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.bottleneck import ACTIVATIONS, Architecture, insert_adapters
from stream.models.places import POSITIONS


@dataclass
class Adapter(Learner):
    """Train two adapters per layer, LayerNorms.

    An adapter is a bottleneck behind a sub-layer. The task's LayerNorms and head are trained too.

    Attributes:
        size: units of a bottleneck.
        init_std: the standard deviation of the first weights. They are truncated at two deviations.
        activation: what stands between the two maps of a bottleneck; ``identity`` is nothing.
        depth: hidden layers in a bottleneck, each of ``size`` units.
        norm: ``layer`` puts a LayerNorm at the input of a bottleneck.
        places: which sub-layers of a layer get a bottleneck.
        form: how a bottleneck stands to its sub-layer: behind it (``sequential``), beside it and
            added (``parallel``), or beside it and multiplied (``multiplicative``).
    """

    lr: float = 1e-3
    size: int = setting(64, at_least(1, WIDEST))
    init_std: float = setting(1e-2, POSITIVE)
    activation: str = setting("gelu", ACTIVATIONS)
    depth: int = setting(1, at_least(1, 64))
    norm: str = setting("none", ("none", "layer"))
    places: str = setting("both", ("both", *POSITIONS))
    form: str = setting("sequential", ("sequential", "parallel", "multiplicative"))

    tags: ClassVar[Tags] = Tags(
        paper="Houlsby et al. 2019, arXiv 1902.00751",
        stores="adapters, LayerNorms, head",
        parameter_isolation=True,
    )

    def trains(self, name: str) -> bool:
        """Return true for the adapters and every LayerNorm."""
        return name in self._layernorms or super().trains(name)

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Put an adapter at the end of every sub-layer that gets one.

        A layer that is used several times (ALBERT) gets one for every use; its LayerNorms are the
        same in all of them.
        """
        self._layernorms = encoder.layernorm_names()
        architecture = Architecture(
            encoder.width, self.size, self.activation, self.depth, self.norm, self.init_std
        )
        places = POSITIONS if self.places == "both" else (self.places,)
        self._adapted = insert_adapters(encoder, architecture, self.form, places)

    @contextmanager
    def without_layers(self, first: int, last: int) -> Iterator[None]:
        """Leave out the adapters of layers ``first`` to ``last`` (from 0) inside the block.

        A layer that is used several times counts for every use.
        The paper's ablation (section 3.6, figure 6): LayerNorms and head stay the trained ones.
        ``last = first - 1`` leaves out none.

        Raises:
            UserError: layers that the encoder does not have.
        """
        count = self.model.encoder.num_layers
        require(
            0 <= first <= last + 1 <= count,
            f"cannot leave out layers {first} to {last}: the encoder has layers 0 to {count - 1}",
        )
        chosen = [adapted for layer, adapted in self._adapted if first <= layer <= last]
        for adapted in chosen:
            adapted.there.on = False
        try:
            yield
        finally:
            for adapted in chosen:
                adapted.there.on = True
