"""A training step captured once and replayed: CUDA graphs.

A step of a small encoder is a thousand short kernels, and starting them takes far longer than
their work. A captured step starts them all at once. It is the same step with the same parameters
and learning rate, and in float32 the same dropout masks. Its shapes are fixed, so there is one
graph a shape, kept from task to task: what a task owns is copied into the one encoder, so that no
pointer changes.
"""

import logging
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import nn

from stream.data.batch import Batch
from stream.data.task import Task
from stream.distributed.world import World
from stream.errors import first_line
from stream.learners.base import Learner
from stream.models.bf16 import copy_all
from stream.models.heads import Head
from stream.training.capture_guard import CaptureGuard, agree
from stream.training.gpu_memory import capture_stream, give_gpu_memory_back, nothing_collected
from stream.training.schedule import optimizer_for

LOG = logging.getLogger(__name__)
# Tokens. Of a short batch a GPU hardly feels the padding; above 512, at most a quarter is padding.
SHORT_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
WIDTHS = (*SHORT_WIDTHS, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192)
WIDER = 2048  # steps above

Compute = Callable[[Batch], torch.Tensor]
Shape = tuple[Any, ...]


class Captured:
    """One CUDA graph a shape of the batch, replayed.

    In bf16 batches are padded to few widths, and the smaller ones at the end of an epoch to whole
    ones. In float32 these are executed eagerly, and so are those with stored examples. A step that
    no graph can hold (a copy from the CPU in it, say) is executed eagerly from then on. So is one
    whose loss the method changed and reads in Python what changes (`CaptureGuard`), or whose first
    replay gives another loss than executing it.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        torch.cuda.empty_cache()  # no other graph can use the memory of an engine that is gone
        self._stream = capture_stream(torch.cuda.current_device())
        self._pool = torch.cuda.graph_pool_handle()
        self._graphs: dict[Shape, _Graph] = {}
        # Graphs hold pointers, so what they read or write has to stay where it is.
        self._moments: dict[nn.Parameter, dict[str, torch.Tensor]] = {}
        self._rates: dict[tuple[float, float], torch.Tensor] = {}
        self._heads: dict[Shape, Head] = {}
        self._warm: set[Shape] = set()
        self._refused = ""
        self._guard: CaptureGuard | None = None

    def __str__(self) -> str:
        return "captured (one CUDA graph per shape of the batch)"

    @property
    def refused(self) -> str:
        """Why steps are executed eagerly from some step on; empty while they are captured."""
        return self._refused

    def begin(self, learner: Learner, task: Task, weight_decay: float) -> torch.optim.AdamW:
        """Return an optimizer whose tensors are those of earlier tasks, as good as new."""
        self._model, self._learner = learner.model, learner
        changed = learner.overrides("loss") or learner.overrides("after_backward")
        checks = changed and not learner.tags.cuda_graph_safe
        self._guard = CaptureGuard(learner) if checks else None
        # What a step reads may be elsewhere now.
        if changed or learner.has_task_modules or task.shared is not None:
            self._graphs.clear()
            self._pool = torch.cuda.graph_pool_handle()  # one without graphs cannot be used again
            torch.cuda.empty_cache()  # nothing else can use the memory of the one before
        self._lend_head(task)
        self._model.sync_bf16_copy()
        optimizer = optimizer_for(learner, weight_decay, capturable=True)
        for group in (group for group in optimizer.param_groups if group["params"]):
            rate = torch.zeros((), device=self._model.device)
            key = group["peak_lr"], group["weight_decay"]
            group["lr"] = self._rates.setdefault(key, rate)
            for parameter in group["params"]:
                optimizer.state[parameter] = self._fresh_moments(parameter)
        self._optimizer = optimizer
        self._trained = tuple(learner.trained_parameters().values())
        return optimizer

    def _lend_head(self, task: Task) -> None:
        """Let tasks share one head while they learn; that of classes has room for many outputs."""
        own = self._model.head(task.head_name)
        if task.shared is not None:
            return  # it grows with every task, so there is nothing to keep for the next one
        # A loss of the method's own may read every logit, so its head has no room to spare.
        roomy = task.spec.target == "class" and self._guard is None
        room = 2 ** max(own.outputs - 1, 31).bit_length() if roomy else own.outputs
        if (task.spec.target, room) not in self._heads:
            lent = Head(own.in_features, own.outputs, room).to(self._model.device)
            self._heads[task.spec.target, room] = lent
        shared = self._heads[task.spec.target, room]
        shared.take(own)
        shared.train(own.training)
        shared.requires_grad_(own.weight.requires_grad)
        self._model.heads[task.name] = shared

    def _fresh_moments(self, parameter: nn.Parameter) -> dict[str, torch.Tensor]:
        """Return AdamW's state of a parameter, all zero, where it was before."""
        if parameter not in self._moments:
            self._moments[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        for tensor in self._moments[parameter].values():
            tensor.zero_()
        return self._moments[parameter]

    def step(self, compute: Compute, batch: Batch) -> torch.Tensor:
        """Execute one step; return its loss, a scalar."""
        sizes = None if self._refused else self._sizes(batch)
        if sizes is None:
            return compute(batch)
        head = self._model.heads[batch.parts[0].task.head_name]
        read = self._learner.active.sources if self._learner.has_task_modules else None
        within = tuple((name, id(kept)) for name, kept in self._learner.fit_tensors.items())
        shape = (sizes, id(head), read, within, *map(id, self._trained))
        guard = self._guard
        state = () if guard is None else guard.state()
        graph = self._graphs.get((shape, state))
        if graph is not None:
            return graph.replay(batch)
        blocks = zip(batch.blocks, sizes, strict=True)
        inputs = batch.with_blocks(block.padded(*size) for block, size in blocks)
        before = {} if guard is None else guard.attributes()
        graph = self._capture(compute, inputs, sizes)
        if guard is not None and (reason := guard.refusal(shape, state, before)):
            self._refuse(reason)
        self._agree()
        if graph is None or self._refused:
            return compute(batch)
        self._graphs[shape, state] = graph
        return graph.replay(batch) if guard is None else self._compared(graph, compute, batch)

    def _refuse(self, reason: str) -> None:
        """Execute steps eagerly from now on, and say why."""
        if not self._refused:
            self._refused = reason
            LOG.warning("steps are executed eagerly from here: %s", reason)

    def _agree(self) -> None:
        """Have all ranks capture steps, or none."""
        if World.now().any(told=bool(self._refused)):
            self._refuse("another rank cannot capture them")

    def _compared(self, graph: "_Graph", compute: Compute, batch: Batch) -> torch.Tensor:
        """Replay a step, take it back, and execute it; refuse where the losses differ."""
        random = torch.cuda.get_rng_state()
        learned = self._learned()
        before = [tensor.detach().clone() for tensor in learned]
        replayed = graph.replay(batch)
        copy_all(learned, before)
        torch.cuda.set_rng_state(random)
        loss = compute(graph.inputs)
        if not agree(replayed, loss):
            self._refuse(f"a replayed loss of learner {self._learner.name} differs")
        self._agree()
        return loss

    def _learned(self) -> list[torch.Tensor]:
        """Return all that a step changes."""
        states = (self._optimizer.state[parameter].values() for parameter in self._trained)
        return [*self._trained, *chain.from_iterable(states)]

    def _sizes(self, batch: Batch) -> tuple[tuple[int, int], ...] | None:
        """Return the rows and tokens to which each block is padded; None where it is not captured.

        Dropout draws by place, so a wider batch gets other masks. In float32, captured steps learn
        what eager ones do, so nothing is padded; in bf16 they differ anyway.
        """
        new, *others = batch.blocks
        if not self._trained or len(batch.parts) > 1 or any(isinstance(o, Batch) for o in others):
            return None
        if self._pads:
            more = ((len(block), self._width(block.width)) for block in others)
            return (self._batch_size, self._width(new.width)), *more
        whole = len(new) == self._batch_size and new.count is None and not others
        return ((len(new), new.width),) if whole else None

    @property
    def _pads(self) -> bool:
        """Whether batches are padded to few shapes."""
        return self._model.in_bf16

    def _width(self, width: int) -> int:
        """Return the next of few widths."""
        return graph_width(width, self._model.encoder.most_tokens)

    def _capture(self, compute: Compute, inputs: Batch, sizes: Shape) -> "_Graph | None":
        """Capture the step; nothing is learned. None where something in it refuses."""
        if sizes not in self._warm:
            self._warm.add(sizes)
            self._warm_up(compute, inputs)
        # To begin resets where the masks of graphs start, which a step that still runs may read.
        self._stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with nothing_collected(), torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                loss = compute(inputs)
            except RuntimeError as error:
                self._refuse(first_line(error))
                loss = None
            graph.capture_end()
        torch.cuda.current_stream().wait_stream(self._stream)
        return None if loss is None else _Graph(graph, inputs, loss)

    def _warm_up(self, compute: Compute, batch: Batch) -> None:
        """Execute the step once, for whatever libraries do at first, and take it back."""
        learned = self._learned()
        before = [tensor.detach().clone() for tensor in learned]
        random = torch.cuda.get_rng_state()
        # The step changes what is copied, so it has to wait for the copies.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            compute(batch)
            copy_all(learned, before)
        torch.cuda.synchronize()
        torch.cuda.set_rng_state(random)

    def end(self, learner: Learner, task: Task) -> None:
        """Give the task a head of its own, with the learned values."""
        self._optimizer.zero_grad(set_to_none=True)
        if task.shared is not None:
            return
        shared = self._model.head(task.name)
        own = Head(shared.in_features, shared.outputs).to(self._model.device)
        own.take(shared)
        self._model.heads[task.name] = own.requires_grad_(shared.weight.requires_grad)

    def close(self) -> None:
        """Give the memory of graphs and of the optimizer back; nothing is learned afterwards."""
        self._graphs.clear()
        self._moments.clear()
        self._heads.clear()
        give_gpu_memory_back()


def graph_width(width: int, most: int | None) -> int:
    """Return the width to which batches are padded that a graph holds.

    Args:
        width: of the batch.
        most: for how many tokens the encoder has positions; None for any number.
    """
    beyond = -(-width // WIDER) * WIDER
    wide = next((w for w in WIDTHS if width <= w), beyond)
    return wide if most is None else max(width, min(wide, most))


class _Graph:
    """A captured step and where it reads its batch and writes its loss."""

    def __init__(self, graph: torch.cuda.CUDAGraph, inputs: Batch, loss: torch.Tensor):
        self._graph = graph
        self.inputs = inputs
        self._loss = loss

    def replay(self, batch: Batch) -> torch.Tensor:
        """Execute the step on a batch that has at most as many rows and tokens."""
        for mine, theirs in zip(self.inputs.blocks, batch.blocks, strict=True):
            mine.copy_from(theirs)
        self._graph.replay()
        return self._loss.clone()
