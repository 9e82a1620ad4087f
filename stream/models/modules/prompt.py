"""Soft prompts: trained vectors beside the embeddings of a text's tokens.

B examples, L tokens, E width of a token's embedding.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from stream.models.encoder import Encoder
from stream.models.modules.active_tasks import ActiveTasks
from stream.models.modules.by_task import ByTask
from stream.models.modules.fresh import Fresh


class SoftPrompt(Fresh):
    """``length`` vectors that are the same for every text: length x E parameters.

    They start as the embeddings of tokens drawn from the vocabulary (Lester et al. 2021, section
    3.2, "sampled vocab").
    """

    def __init__(self, encoder: Encoder, length: int):
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(length, encoder.embedding_width))
        self._encoder = (encoder,)  # in a tuple, so that it is not a part of this module

    def __deepcopy__(self, memo: dict[int, object]) -> "SoftPrompt":
        """Return a prompt of its own for the same, uncopied encoder."""
        copied = SoftPrompt(self._encoder[0], len(self.vectors))
        copied.vectors = nn.Parameter(self.vectors.detach().clone())
        copied.train(self.training)
        return copied.requires_grad_(self.vectors.requires_grad)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw tokens, each at most once, and take their embeddings."""
        with torch.no_grad():
            self.vectors.copy_(drawn_tokens(self._encoder[0], len(self.vectors), generator))

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        """Map token embeddings [B, L, E] to the prompt of each text, [B, length, E]."""
        return self.vectors.expand(len(embedded), -1, -1).to(embedded.dtype)


def drawn_tokens(encoder: Encoder, count: int, generator: torch.Generator) -> torch.Tensor:
    """Return the embeddings of ``count`` different tokens of the vocabulary, [count, E].

    They are what the encoder makes of the tokens: some scale the rows of the table.
    """
    body: Any = encoder.body
    embed = body.get_input_embeddings()
    drawn = torch.randperm(len(embed.weight), generator=generator)[:count]
    return embed(drawn.to(embed.weight.device)).detach().cpu()


class PromptByTask(nn.Module):
    """A soft prompt for every task; those of the active ones stand one behind the other.

    The newest one is first (Razdaibiedina et al. 2023, arXiv 2301.12314, figure 1).
    """

    def __init__(self, encoder: Encoder, tasks: Sequence[str], length: int, active: ActiveTasks):
        super().__init__()
        self.prompts = ByTask({task: SoftPrompt(encoder, length) for task in tasks})
        self._active = active

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        """Map token embeddings [B, L, E] to all active prompts, [B, active x length, E]."""
        names = reversed(self._active.names)
        return torch.cat([self.prompts[name](embedded) for name in names], dim=1)
