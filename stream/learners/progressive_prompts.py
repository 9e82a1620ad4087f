"""Progressive prompts: a soft prompt per task, read together with all earlier ones, isolated.

Razdaibiedina et al. 2023 (arXiv 2301.12314), section 3: task k learns a prompt P_k of ``length``
vectors and answers from [P_k, ..., P_1, x]; earlier prompts and the encoder are frozen, so nothing
is forgotten, and a task may gain from prompts before its own. With ``mlp`` the new prompt is made
by a residual MLP while it is learned, P_k = p + W2 tanh(W1 p + b1) + b2, of which the result alone
is kept (the released code's ``MLP1`` with 800 units; of its two forms this is the one without a
LayerNorm at the end). Deviations: a head reads the encoder's vector, where the paper's T5 writes
the label; prompts stand behind the first token, at the first position (`Encoder.insert_prompt`), so
that their number is not bounded by the encoder's positions and nothing is cut off a text, while the
released code cuts prompts and text together to 512; an input grows by ``length`` vectors a task,
and so does the cost of attention. What learning a task changes is counted without the MLP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from stream.config.setting import at_least, setting
from stream.data.task import Task
from stream.learners._shared.reparameterized import Reparameterized
from stream.learners.base import Tags
from stream.models.encoder import Encoder
from stream.models.modules.prompt import PromptByTask
from stream.models.modules.reparameterization import ResidualPrompt


@dataclass
class ProgressivePrompts(Reparameterized):
    """Train a soft prompt that stands before earlier ones.

    Earlier prompts are frozen; a head is trained with the new one.

    Attributes:
        length: vectors of a task's prompt; the k-th task reads k times as many.
    """

    lr: float = 3e-2
    head_lr: float | None = None
    length: int = setting(10, at_least(1, 4096))

    tags: ClassVar[Tags] = Tags(
        paper="Razdaibiedina et al. 2023, arXiv 2301.12314",
        stores="prompt, head",
        parameter_isolation=True,
        reads_past_tasks=True,
        cuda_graph_safe=True,
    )

    def setup(self, encoder: Encoder, task_names: Sequence[str]) -> None:
        """Insert the prompt of every task into the encoder's input."""
        encoder.insert_prompt(PromptByTask(encoder, task_names, self.length, self.active))
        if self.mlp:
            width = encoder.embedding_width
            self.learn_through(ResidualPrompt(self.length, width, self.mlp_size))

    def made(self, task: Task) -> list[torch.nn.Parameter]:
        """Return the prompt of ``task``."""
        return list(self.task_modules(task.name).values())
