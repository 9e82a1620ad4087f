"""The one training loop: every learner learns every task through `fit`."""

from collections.abc import Callable
from contextlib import nullcontext

import torch

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.task import Task
from stream.distributed.world import World
from stream.learners.base import Learner
from stream.seeding import torch_randomness
from stream.training.engine import Eager, Engine
from stream.training.fit_state import FitReport, FitState, Step
from stream.training.flops import FlopMeter
from stream.training.ranks import check_equal, part_of, share_kept, sharing_gradients
from stream.training.snapshot import FitSnapshot


def fit(  # noqa: PLR0913 - what is learned, how it is executed, from where
    learner: Learner,
    task: Task,
    training: TrainingConfig,
    on_step: Callable[[Step], None] = lambda step: None,
    *,
    engine: Engine | None = None,
    meter: FlopMeter | None = None,
    resumed: FitSnapshot | None = None,
) -> FitReport:
    """Let the learner learn one task.

    Of several ranks, each learns a slice of every batch, and all have the same weights afterwards.

    Args:
        learner: any learner.
        task: the task; only its training split is read here.
        training: the schedule.
        on_step: called after every step.
        engine: how steps are executed; eagerly by default.
        meter: counts the operations of every step, where given.
        resumed: where an earlier attempt stood; goes on from there as if it had not ended.

    Raises:
        TrainingDivergedError: a loss that is not finite.
    """
    learner.start(task)
    learner.model.train()
    device, engine, world = learner.model.device, engine or Eager(), World.now()
    optimizer = engine.begin(learner, task, training.weight_decay)
    state = FitState(learner, task, training, optimizer, meter, resumed)
    check_equal(learner, world, "before the first step")

    def learn(batch: Batch) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with learner.model.computing():
            loss = learner.loss(batch)
            loss.backward()
        learner.after_backward(batch)
        state.clip_gradients()
        optimizer.step()
        return loss.detach()

    for epoch in state.epochs():
        draws = torch_randomness(learner.seed, "dropout", task.name, epoch.index, *world.names)
        with draws, sharing_gradients(learner.model, world):
            for host_batch in state.batches(epoch):
                batch = part_of(host_batch, world).to(device)
                state.set_learning_rate()
                with meter.counting(batch) if meter is not None else nullcontext():
                    loss = engine.step(learn, batch)
                state.note(loss, host_batch)
                learner.after_step(batch)
                with state.paused():
                    on_step(state.progress(len(host_batch)))
    engine.end(learner, task)
    check_equal(learner, world, "after a task")
    with meter.everything() if meter is not None else nullcontext():
        learner.finish(task)
    share_kept(learner, task, world)
    return state.report(engine.refused)
