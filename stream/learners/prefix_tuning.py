"""Prefix tuning: trained keys and values in front of every layer's attention, isolated per task.

Li & Liang 2021 (arXiv 2101.00190), section 4, for encoders Liu et al. 2021 (P-tuning v2, arXiv
2110.07602): in every layer ``length`` keys and values are put before those of the tokens,
softmax(Q [P_K; K]^T / sqrt(d)) [P_V; V], and are all that is trained. With ``mlp`` they are made by
an MLP of the tokens' width while they are learned, tanh between its two maps (Li & Liang, section
4.3, with 512 units for tables and 800 for summaries; P-tuning v2 found that it helps some tasks and
hurts others), and the result alone is kept. Deviations: first values are drawn from a normal
distribution of deviation ``init_std`` (0.02 as He et al. 2022, arXiv 2110.04366, in their code;
P-tuning v2 draws with 1, Li & Liang prefer activations of real words); no dropout of the prefix.
What learning a task changes is counted without the MLP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import POSITIVE, at_least, setting
from stream.data.task import Task
from stream.learners._shared.reparameterized import Reparameterized
from stream.learners.base import Tags
from stream.models.encoder import Encoder
from stream.models.modules.prefix import insert_prefixes
from stream.models.modules.reparameterization import PrefixMlp


@dataclass
class PrefixTuning(Reparameterized):
    """Train keys and values before those of the tokens.

    They are those of every layer; a head is trained with them.

    Attributes:
        length: keys, and values, of the prefix of a layer.
        init_std: the standard deviation of the first keys and values.
        mlp_size: units of the MLP.
    """

    lr: float = 1e-2
    length: int = setting(20, at_least(1, 4096))
    init_std: float = setting(0.02, POSITIVE)

    tags: ClassVar[Tags] = Tags(
        paper="Li & Liang 2021, arXiv 2101.00190",
        stores="prefixes, head",
        parameter_isolation=True,
        cuda_graph_safe=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Give every layer's attention a prefix."""
        self._prefixes = insert_prefixes(encoder, self.length, self.init_std, self.name)
        if self.mlp:
            widths = [part.shape[1] for prefix in self._prefixes for part in prefix.parameters()]
            self.learn_through(PrefixMlp(self.length, encoder.width, self.mlp_size, widths))

    def made(self, task: Task) -> list[torch.nn.Parameter]:
        """Return keys and values of every layer, from the bottom up."""
        return [part for prefix in self._prefixes for part in prefix.parameters()]
