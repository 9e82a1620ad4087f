"""What the encoder makes of a task's training rows, as it serves: for methods that read it.

N rows, B of a batch, D width of what heads read.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch

from stream.data.batching import evaluation_batches
from stream.data.task import Task
from stream.models.task_model import TaskModel

BATCH_TOKENS = 2**13


def text_vectors(
    model: TaskModel, task: Task, pad_id: int
) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    """Yield the vectors that heads read, of all training rows of a task, batch by batch.

    They are those of ``backbone.pooling``, without dropout and without gradients.

    Args:
        model: the model; it learns or serves afterwards as before.
        task: the task whose modules the encoder reads now.
        pad_id: the tokenizer's padding token.

    Yields:
        The indices of the rows, and their vectors, float64 [B, D].
    """
    was_training = model.training
    model.eval()
    try:
        chosen = [(task, task.split("train"))]
        for ((_, rows),), batch in evaluation_batches(chosen, pad_id, BATCH_TOKENS):
            with torch.no_grad(), model.computing():
                texts = model.states(batch.to(model.device)).texts
            yield rows, texts.double()
    finally:
        model.train(was_training)


def collected(batches: Iterable[tuple[np.ndarray, torch.Tensor]]) -> np.ndarray:
    """Return the vectors of all batches in the order of their rows, float64 [N, D]."""
    rows, vectors = zip(*batches, strict=True)
    return torch.cat(vectors).cpu().numpy()[np.argsort(np.concatenate(rows))]
