"""IA3: learned factors of keys, values and the feed-forward's inner activations, isolated per task.

Liu et al. 2022 (arXiv 2205.05638), section 3.3: softmax(Q (l_k * K)^T / sqrt(d)) (l_v * V) and
(l_ff * act(W1 x)) W2 in every layer, all factors 1 at first, so that nothing is changed. The
factors are all that is trained. Deviations: a head answers, where the paper's T0 writes the label;
no unlikelihood and length-normalized losses, which are of written answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.rescaling import insert_rescalings


@dataclass
class Ia3(Learner):
    """Train factors of activations.

    They rescale keys, values and the inner activations of every feed-forward; a head is trained
    with them.
    """

    lr: float = 1e-2

    tags: ClassVar[Tags] = Tags(
        paper="Liu et al. 2022, arXiv 2205.05638",
        stores="factors, head",
        parameter_isolation=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Hook the factors to every layer."""
        insert_rescalings(encoder)
