"""A pool of soft prompts with keys, from which each text takes the nearest (Wang et al. 2022).

B examples, L tokens, E width of a token's embedding, D width of the encoder, M prompts of the pool,
P vectors of each, N prompts that a text takes.
"""

import torch
from torch import nn
from torch.nn import functional

from stream.models.encoder import Encoder
from stream.models.modules.fresh import Fresh
from stream.models.modules.prompt import drawn_tokens


class Match:
    """What the last pass took from a pool; copies of the encoder share this object.

    Attributes:
        taken: int64 [B, N], the prompts of each text, the nearest first.
        distance: [B], the summed distances of each text from the keys of its prompts.
        penalty: [M], what distances are multiplied by for the choice while learning; None leaves
            them as they are.
    """

    taken: torch.Tensor
    distance: torch.Tensor
    penalty: torch.Tensor | None = None

    def read_distance(self) -> torch.Tensor:
        """Return the distance, and keep only its values: a kept graph would break a capture."""
        distance, self.distance = self.distance, self.distance.detach()
        return distance

    def __deepcopy__(self, memo: object) -> "Match":
        """Return the same object."""
        return self


class PromptPool(Fresh):
    """M prompts of P vectors, and their keys: M (P E + D) parameters.

    Prompts start as embeddings of tokens drawn from the vocabulary, keys as uniform directions.
    """

    def __init__(self, encoder: Encoder, size: int, length: int, taken: int, match: Match):
        super().__init__()
        self.prompts = nn.Parameter(torch.empty(size, length, encoder.embedding_width))
        self.keys = nn.Parameter(torch.empty(size, encoder.width))
        self._encoder = (encoder,)  # in a tuple, so that it is not a part of this module
        self._taken, self._match = taken, match

    def __deepcopy__(self, memo: dict[int, object]) -> "PromptPool":
        """Return a pool of its own for the same, uncopied encoder."""
        size, length, _ = self.prompts.shape
        copied = PromptPool(self._encoder[0], size, length, self._taken, self._match)
        copied.prompts = nn.Parameter(self.prompts.detach().clone())
        copied.keys = nn.Parameter(self.keys.detach().clone())
        copied.train(self.training)
        for mine, theirs in zip(copied.parameters(), self.parameters(), strict=True):
            mine.requires_grad_(theirs.requires_grad)
        return copied

    def initialize(self, generator: torch.Generator) -> None:
        """Draw tokens for each prompt, then keys of a standard normal distribution."""
        length = self.prompts.shape[1]
        with torch.no_grad():
            for prompt in self.prompts:
                prompt.copy_(drawn_tokens(self._encoder[0], length, generator))
            self.keys.copy_(torch.randn(self.keys.shape, generator=generator))

    def forward(self, embedded: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        """Return the N nearest prompts of each text, the nearest one first, [B, N P, E].

        Args:
            embedded: of the tokens, [B, L, E].
            query: of each text, [B, D].
        """
        directions = functional.normalize(self.keys.float(), dim=1)
        distances = 1 - functional.normalize(query.float(), dim=1) @ directions.T  # [B, M]
        ranked, penalty = distances.detach(), self._match.penalty
        if self.training and penalty is not None:
            ranked = ranked * penalty
        taken = ranked.topk(self._taken, dim=1, largest=False).indices
        self._match.taken = taken
        self._match.distance = distances.gather(1, taken).sum(1)
        return self.prompts[taken].flatten(1, 2).to(embedded.dtype)
