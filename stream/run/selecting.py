"""A learner that keeps, for each task, the best of several candidates, and serves each by its own.

Every candidate is a learner of its own that begins the task on an encoder as it came, so none sees
another. What the chosen one learned of the task goes, as from a checkpoint, to a learner with its
settings that serves. Candidates that differ in learning rates or restarts alone share that learner:
only an optimizer reads these. All encoders share the tensors that nothing changes.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from stream.config.run import TrainingConfig
from stream.config.select import Candidate
from stream.data.batch import Batch
from stream.data.task import Task
from stream.errors import require
from stream.learners.base import Learner
from stream.learners.workload import Workload, all_of
from stream.models.encoder import Encoder
from stream.models.task_model import TaskModel
from stream.record.selection import SelectionRecord
from stream.training.engine import Engine

Tensors = dict[str, torch.Tensor]
READ_BY_OPTIMIZER = tuple(field.name for field in fields(Learner))
BEST = "best."  # before the names of what the best candidate so far learned, in a checkpoint


class Selecting(Learner):
    """Learns each task with several candidates and serves it with the best.

    Args:
        plain: the learner as the run has it; untrained, it stands for tasks to come.
        candidates: what learns each task.

    Attributes:
        waiting: by the number of a candidate, what learned as it before and may learn the next
            task: a learner that has forgotten what it learned, and the engine with its graphs.
    """

    def __init__(self, plain: Learner, candidates: Sequence[Candidate]):
        self.plain, self.candidates = plain, candidates
        self.name, self.tags = plain.name, plain.tags  # type: ignore[misc] - of an object here

    # The stream begins, and a task is learned.

    def attach(self, model: TaskModel, *, tasks: Sequence[Task], seed: int, pad_id: int) -> None:
        """Take the model, whose encoder stays as it came, and make what serves.

        Raises:
            UserError: as a learner, for any candidate; one that reads other tasks' modules; or
                weights in 4 bits.
        """
        require(
            not self.plain.overrides("sources"),
            f"select needs a learner that serves a task with its own modules; {self.name} does not",
        )
        require(
            model.storage != "nf4",
            "select gives every candidate the encoder's weights as they came, which 4 bits do not "
            "keep: use backbone.storage=bf16 instead of nf4",
        )
        self.model, self.seed, self.pad_id = model, seed, pad_id
        self.learned, self.buffer, self._stream = [], None, tuple(tasks)
        self._servers: dict[str, Learner] = {}
        self._chosen: dict[str, Learner] = {}
        self._best: Tensors = {}
        self.waiting: dict[int, tuple[Learner, Engine]] = {}
        self._now = self._server({})
        for candidate in self.candidates:
            self._server(candidate.settings)
        self._share_stored()

    def _share_stored(self) -> None:
        """Keep once what every learner stores otherwise than it came (``backbone.storage``)."""
        servers = [server.model.encoder for server in self._servers.values()]
        stored = [dict(encoder.named_parameters()) for encoder in servers]
        for name, came in self.model.encoder.named_parameters():
            found = [parameters[name] for parameters in stored if name in parameters]
            if found and all(parameter.dtype != came.dtype for parameter in found):
                for parameter in (came, *found[1:]):
                    parameter.data = found[0].data

    def trial(self, candidate: Candidate) -> Learner:
        """Return a learner that can learn a task as a candidate; it has learned nothing."""
        return self._attached(candidate.settings, candidate.seed(self.seed))

    def keep(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Keep what the best candidate so far learned of the task that is being learned."""
        self._best = {name: tensor.detach().clone() for name, tensor in tensors.items()}

    @property
    def best(self) -> Tensors:
        """What the best candidate so far learned of the task that is being learned."""
        return self._best

    def take(self, task: Task, settings: Mapping[str, Any]) -> None:
        """Serve a task from now on with what was kept; it was learned with these settings."""
        self._serve(task, settings, self._best, serve_only=False)
        self._best = {}

    def workload(self, task: Task, training: TrainingConfig) -> Workload:
        """Return the work of all candidates."""
        learners = (replace(self.plain, **c.settings) for c in self.candidates)
        return all_of([learner.workload(task, training) for learner in learners])

    def _attached(self, settings: Mapping[str, Any], seed: int) -> Learner:
        """Return a learner that has begun the stream on an encoder as it came.

        It owns the tensors that it may change; the others are those of ``self.model``.
        """
        learner, encoder = replace(self.plain, **settings), _shared(self.model.encoder)
        precision = "bf16" if self.model.in_bf16 else "float32"
        storage = self.model.storage
        model = TaskModel(encoder, seed, self.model.dropout.p, precision=precision, storage=storage)
        learner.attach(model, tasks=self._stream, seed=seed, pad_id=self.pad_id)
        came = dict(self.model.encoder.named_parameters())
        for name, parameter in encoder.named_parameters():
            if name in came and parameter.requires_grad:
                parameter.data = parameter.data.clone()
        first = learner.task_parameters.first
        first.update({name: came[name].detach() for name in first if name in came})
        return learner

    def _server(self, settings: Mapping[str, Any]) -> Learner:
        """Return the learner that serves what was learned with these settings."""
        read = {k: v for k, v in settings.items() if k not in READ_BY_OPTIMIZER}
        key = json.dumps(read, sort_keys=True)
        if key not in self._servers:
            self._servers[key] = self._attached(read, self.seed)
        return self._servers[key]

    def server_of(self, task: str) -> Learner:
        """Return the learner that serves a task; of one that was not learned, the plain one."""
        return self._chosen.get(task) or self._server({})

    def _serve(
        self,
        task: Task,
        settings: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        *,
        serve_only: bool,
    ) -> None:
        """Give a task to the learner that serves it."""
        server = self._server(settings)
        server.load_task_state(task, tensors, serve_only=serve_only)
        self._chosen[task.name] = server
        self.learned.append(task)

    def forget(self, task: Task) -> None:
        """Be again as if ``task``, which was taken, had never been met."""
        self._chosen.pop(task.name).forget(task)
        self.learned = [other for other in self.learned if other.name != task.name]

    # A task is served.

    def overrides(self, hook: str) -> bool:
        """Return whether the method fills a hook."""
        return self.plain.overrides(hook)

    @contextmanager
    def serving(self, task: Task) -> Iterator[None]:
        """Serve ``task`` inside the block; ``model`` is that of the learner that does so."""
        before, self._now, own = self._now, self.server_of(task.name), self.model
        with self._now.serving(task):
            self.model = self._now.model
            self.model.eval()  # for good: it never learns
            try:
                yield
            finally:
                self.model, self._now = own, before

    def predict(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits of each part of a batch; its task is being served."""
        return self._now.predict(batch)

    def num_trained(self, task: Task) -> int:
        """Return how many parameters the chosen candidate could change."""
        return self.server_of(task.name).num_trained(task)

    def served_state(self, task: str) -> Tensors:
        """Return exactly the tensors that a prediction for ``task`` reads."""
        return self.server_of(task).served_state(task)

    def common_state(self, task: str) -> Tensors:
        """Return the part of it that is of the encoder, and of no task alone."""
        return self.server_of(task).common_state(task)

    def task_state(self, task: str) -> Tensors:
        """Return the part of it that is this task's alone."""
        return self.server_of(task).task_state(task)

    def _learning_state(self) -> Tensors:
        """Return what only learning the next task needs: the encoder as it came."""
        encoder, keeps = self.model.encoder, self.tags.keeps_pretrained
        named = encoder.named_parameters()
        return {f"first.{n}": p.detach() for n, p in named if keeps or not encoder.reads(n)}

    # Checkpoints.

    def recall(self, selection: Mapping[str, SelectionRecord]) -> None:
        """Take what was chosen for each task; to be called before what they own is loaded."""
        found = {name: of for name, of in selection.items() if of.chosen is not None}
        self._settings = {
            name: of.candidates[of.chosen or 0].settings for name, of in found.items()
        }

    def load_task_state(
        self, task: Task, tensors: Mapping[str, torch.Tensor], *, serve_only: bool = False
    ) -> None:
        """Take the `task_state` of a learned task.

        Raises:
            KeyError, ValueError: nothing was chosen for it, or tensors that do not fit.
        """
        self._serve(task, self._settings[task.name], tensors, serve_only=serve_only)

    def shared_state(self) -> Tensors:
        """Return what the best candidate so far learned of the task that is being learned."""
        return {f"{BEST}{name}": tensor for name, tensor in self._best.items()}

    def load_shared_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the `shared_state`."""
        device = self.model.device
        self.keep({n.removeprefix(BEST): tensor.to(device) for n, tensor in tensors.items()})


def _shared(encoder: Encoder) -> Encoder:
    """Return an encoder with modules of its own, and with the tensors of the other."""
    memo: dict[int, Any] = {id(p): nn.Parameter(p.detach()) for p in encoder.parameters()}
    return copy.deepcopy(encoder, memo)
