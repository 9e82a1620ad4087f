"""How a training step is executed: as it stands, or captured and replayed where that can be."""

from typing import ClassVar

import torch

from stream.data.batch import Batch
from stream.data.task import Task
from stream.errors import require
from stream.learners.base import Learner
from stream.training.captured import Captured, Compute
from stream.training.schedule import optimizer_for


class Eager:
    """The reference: kernel after kernel."""

    refused: ClassVar[str] = ""

    def __init__(self, why: str = ""):
        self._why = why

    def __str__(self) -> str:
        return f"eager ({self._why})" if self._why else "eager"

    def begin(self, learner: Learner, task: Task, weight_decay: float) -> torch.optim.AdamW:
        """Return the optimizer with which ``learner`` learns ``task``."""
        del task
        learner.model.sync_bf16_copy()
        return optimizer_for(learner, weight_decay)

    def step(self, compute: Compute, batch: Batch) -> torch.Tensor:
        """Execute one step; return its loss, a scalar."""
        return compute(batch)

    def end(self, learner: Learner, task: Task) -> None:
        """Leave nothing of this engine in the model."""

    def close(self) -> None:
        """Give back what is held; nothing is learned with this engine afterwards."""


Engine = Eager | Captured


def pick_engine(
    wanted: str,
    learner: Learner,
    device: torch.device,
    batch_size: int,
    *,
    counting: bool,
    recomputing: bool = False,
) -> Engine:
    """Return the engine: ``auto`` captures where it can.

    Args:
        wanted: ``auto``, ``eager`` or ``captured``.
        learner: the learner, whose hooks may forbid to capture.
        device: where it learns.
        batch_size: rows of a whole batch; of several ranks, those of each.
        counting: operations are counted, which needs every kernel to be seen.
        recomputing: layers are computed again to go backward.

    Raises:
        UserError: ``captured`` where it cannot be.
    """
    why = ""
    if device.type != "cuda":
        why = "graphs need a CUDA device"
    elif not learner.tags.makes_steps:
        why = "the learner has no training steps"
    elif learner.tags.cuda_graph_safe is False:
        why = "the learner's tags say that its steps cannot be captured"
    elif learner.overrides("after_backward") and not learner.tags.cuda_graph_safe:
        why = "the learner changes gradients, and its tags do not say cuda_graph_safe=True"
    elif counting:
        why = "operations are counted"
    elif recomputing:
        why = "training.gradient_checkpointing sets back random numbers, which no graph can hold"
    require(wanted != "captured" or not why, f"training.engine=captured cannot be: {why}")
    if wanted == "eager":
        return Eager()
    return Eager(why) if why else Captured(batch_size)
