"""Floating-point operations of learning, counted by torch (`torch.utils.flop_counter`).

Counted are matrix products and convolutions, forward and backward, as they are really executed: the
backward pass of a frozen encoder is cheaper. A multiplication and an addition count as two.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from stream.data.batch import Batch
from stream.data.batching import collate, training_rows
from stream.data.task import Task
from stream.learners.base import Learner
from stream.models.losses import batch_loss
from stream.seeding import preserved_rng_state

# torch's counter knows attention's fused kernels, but not the one of a CPU without dropout.
ATEN = torch.ops.aten
FUSED = {
    ATEN._scaled_dot_product_flash_attention_for_cpu: (
        lambda query, key, value, *rest, **options: sdpa_flop_count(query, key, value)
    ),
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda *shapes, **options: sdpa_backward_flop_count(*shapes[:4])
    ),
}
Shape = tuple[tuple[tuple[str, int, int], ...], tuple[tuple[int, int], ...], tuple[bool, ...]]


class FlopMeter:
    """Counts the steps of one task; those of the same shapes and trained weights once."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._known: dict[Shape, int] = {}
        self.total = 0

    @contextmanager
    def counting(self, batch: Batch) -> Iterator[None]:
        """Count the forward and backward pass inside the block."""
        # The task's name too: heads of other tasks have other sizes.
        rows = tuple((p.task.name, p.stop - p.start, p.width) for p in batch.parts)
        blocks = tuple((len(block), block.width) for block in batch.blocks)
        shape = rows, blocks, tuple(p.requires_grad for p in self._model.parameters())
        if shape not in self._known:
            with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
                yield
            self._known[shape] = counter.get_total_flops()
        else:
            yield
        self.total += self._known[shape]

    @contextmanager
    def everything(self) -> Iterator[None]:
        """Count every operation inside the block, once."""
        with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
            yield
        self.total += counter.get_total_flops()


def count_pass(learner: Learner, task: Task, batch_size: int, device: torch.device) -> int:
    """Return the operations of one forward and backward pass over the training rows of ``task``.

    Without whatever else a method mixes into its batches; learns nothing.
    """
    meter, split = FlopMeter(learner.model), task.split("train")
    with preserved_rng_state():
        for rows in training_rows(task, batch_size, learner.seed, epoch=0):
            batch = collate([(task, split, rows)], learner.pad_id)
            with meter.counting(batch):
                batch = batch.to(device)
                with learner.model.computing():
                    batch_loss(batch, learner.model(batch)).backward()
    learner.model.zero_grad(set_to_none=True)
    return meter.total
