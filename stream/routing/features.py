"""Features of texts in the space of the pretrained encoder, which no method changes.

B texts, L tokens, D width.
"""

import copy
from collections.abc import Iterator

import numpy as np
import torch

from stream.data.batches import evaluation_batches
from stream.data.task import Split, Task
from stream.learners.base import Learner, Tensors
from stream.models.encoder import Encoder
from stream.models.heads import TaskModel


class PretrainedFeatures:
    """The pretrained encoder beside that of a learner, with which it shares what never changes."""

    def __init__(self, encoder: Encoder, *, features: str, precision: str):
        """Copy an encoder before a learner inserts anything.

        Args:
            encoder: on the device where it computes.
            features: ``mean`` of the tokens, or ``pooled``: what heads read.
            precision: ``float32`` or ``bf16``.
        """
        self._features = features
        self._model = TaskModel(copy.deepcopy(encoder), seed=0, precision=precision).eval()
        self._model.requires_grad_(requires_grad=False)

    def share(self, learner: Learner) -> None:
        """Take the learner's tensors in place of those copied ones that it never changes.

        They are in memory once then, and the ledger counts them once.
        """
        inside = dict(learner.model.encoder.named_parameters())
        first = learner.task_parameters.first
        for name, parameter in list(self._model.encoder.named_parameters()):
            if name in first:
                mine = torch.nn.Parameter(first[name], requires_grad=False)
            elif name in inside and not learner.is_shared(name):
                mine = inside[name]
            else:
                continue
            if torch.equal(mine, parameter):  # not where a method began by changing it
                owner, _, last = name.rpartition(".")
                setattr(self._model.encoder.get_submodule(owner), last, mine)

    def tensors(self) -> Tensors:
        """Return the tensors that features are computed with, by name."""
        return {f"encoder.{n}": p for n, p in self._model.encoder.read_parameters().items()}

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
            with torch.no_grad(), self._model.computing():
                states = self._model.states(batch.to(self._model.device))
            vectors = states.texts
            if self._features == "mean":
                mask = states.mask[..., None]
                vectors = (states.tokens.float() * mask).sum(1) / mask.sum(1)
            yield places, vectors.cpu().numpy().astype(np.float64)
