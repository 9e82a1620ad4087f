"""What learns and measures, in a run or on one of its workers: a learner and the tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from stream.config.run import RunConfig
from stream.data.task import Task
from stream.distributed.world import World
from stream.evaluation.evaluate import evaluate
from stream.learners.base import Learner
from stream.record.matrix import Cell
from stream.training.engine import Engine, pick_engine


@dataclass
class Bench:
    """One learner and the tasks that it can learn.

    Attributes:
        config: the whole configuration; ``config.learner`` is the learner.
        tasks: the stream, in order.
        learner: has begun the stream.
        device: where it learns and predicts.
    """

    config: RunConfig
    tasks: Sequence[Task]
    learner: Learner
    device: torch.device

    @cached_property
    def engine(self) -> Engine:
        """How training steps are executed."""
        training = self.config.training
        return pick_engine(
            training.engine,
            self.learner,
            self.device,
            World.now().rows_each(training.batch_size),
            counting=self.config.count_flops,
            recomputing=training.gradient_checkpointing,
        )

    def how(self) -> str:
        """Say how it computes.

        Raises:
            UserError: it cannot be done as asked for.
        """
        if not self.learner.tags.uses_encoder:
            return "no training steps; the encoder is not run"
        makes_steps = self.learner.tags.makes_steps
        how = f"training steps: {self.engine}" if makes_steps else "no training steps"
        precision = "bf16" if self.learner.model.in_bf16 else "float32"
        storage = self.config.backbone.storage
        stored = "" if storage == "float32" else f", what is not trained is stored in {storage}"
        again = self.config.training.gradient_checkpointing
        recomputed = ", layers are computed again to go backward" if again else ""
        return f"{how}; the encoder computes in {precision}{stored}{recomputed}"

    def measure_here(self, task: Task, split: str) -> Cell:
        """Evaluate one task now, in this process.

        Raises:
            TrainingDivergedError: logits that are not finite.
        """
        tokens = self.config.evaluation.batch_tokens
        return evaluate(self.learner, task, split, tokens, self.device)
