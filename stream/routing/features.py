"""Features of texts in the space of the pretrained encoder, which no method changes.

B texts, L tokens, D width.
"""

import copy
from collections.abc import Iterator

import numpy as np
import torch
from torch.nn.attention import sdpa_kernel

from stream.data.batching import evaluation_batches
from stream.data.task import Split, Task
from stream.learners.base import Learner, Tensors
from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder
from stream.models.precision import ATTENTION


class PretrainedFeatures:
    """The pretrained encoder beside that of a learner, with which it shares what never changes."""

    def __init__(self, encoder: Encoder, *, features: str, precision: str):
        """Copy an encoder before a learner inserts anything.

        Args:
            encoder: on the device where it computes.
            features: ``mean`` of the tokens, scaled to length 1, or ``pooled``: what heads read.
            precision: ``float32`` or ``bf16``.
        """
        self._features = features
        self._encoder = copy.deepcopy(encoder).eval().requires_grad_(requires_grad=False)
        self._in_bf16, self._computes = precision == "bf16", self._encoder

    def share(self, learner: Learner) -> None:
        """Take the learner's tensors in place of those copied ones that it never changes.

        They are in memory once then, and the ledger counts them once. To be called before `of`.
        """
        inside = dict(learner.model.encoder.named_parameters())
        first = learner.task_parameters.first
        for name, parameter in list(self._encoder.named_parameters()):
            if name in first:
                mine = torch.nn.Parameter(first[name], requires_grad=False)
            elif name in inside and name not in learner.ownership.shared:
                mine = inside[name]
            else:
                continue
            # A method may have begun by changing it.
            if torch.equal(mine, parameter.to(mine.dtype)):
                owner, _, last = name.rpartition(".")
                setattr(self._encoder.get_submodule(owner), last, mine)
        if self._in_bf16:  # of weights that never change, one copy is enough
            self._computes = Bf16Encoder(self._encoder).encoder

    def tensors(self) -> Tensors:
        """Return the tensors that features are computed with, by name."""
        return {f"encoder.{n}": p for n, p in self._encoder.read_parameters().items()}

    def of(
        self, task: Task, split: Split, pad_id: int, batch_tokens: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield places in the split, int64 [B], and features, float64 [B, D], longest texts first.

        Args:
            task: whose rows they are.
            split: the rows; labels are not read.
            pad_id: the tokenizer's padding token.
            batch_tokens: the largest number of padded tokens per batch.
        """
        for ((_, places),), batch in evaluation_batches([(task, split)], pad_id, batch_tokens):
            there = batch.to(next(self._encoder.parameters()).device)
            with torch.no_grad(), sdpa_kernel(ATTENTION):
                vectors, tokens = self._computes.states(there)
                if self._features == "mean":
                    mask = there.attention_mask[..., None]
                    vectors = (tokens.float() * mask).sum(1)
                    vectors = vectors / vectors.norm(dim=1, keepdim=True)
            yield places, vectors.float().cpu().numpy().astype(np.float64)
