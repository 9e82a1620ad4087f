"""Prompt tuning: trained vectors before a text in the frozen encoder, isolated per task.

Lester et al. 2021 (arXiv 2104.08691), sections 2 and 3.2: ``length`` vectors are put beside the
embeddings of a text's tokens, start as embeddings of tokens drawn from the vocabulary, and are all
that is trained. Deviations: a head reads the first token's vector, where the paper's T5 writes the
label as text; the paper draws among the 5,000 most common tokens; the prompt stands behind the
first token, at the first position, so that tokens keep their positions (`Encoder.insert_prompt`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import at_least, setting
from stream.learners.base import Learner, Tags
from stream.models.encoder import Encoder
from stream.models.modules.prompt import SoftPrompt


@dataclass
class PromptTuning(Learner):
    """Train a soft prompt.

    A head is trained with it; each task owns its copy.

    Attributes:
        length: vectors of the prompt, which stand beside the tokens of a text.
    """

    lr: float = 1e-1
    length: int = setting(20, at_least(1, 4096))

    tags: ClassVar[Tags] = Tags(
        paper="Lester et al. 2021, arXiv 2104.08691",
        stores="prompt, head",
        parameter_isolation=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the prompt into the encoder's input."""
        encoder.insert_prompt(SoftPrompt(encoder, self.length))
