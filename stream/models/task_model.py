"""The model that learners train: one encoder and a linear head a task, or one for all tasks.

The heads of isolated tasks rest while they are not needed (`TaskModel.rest_heads`): they are no
part of the model then, and in main memory, so that a step takes as long after a thousand tasks as
after one.

B examples, L tokens, D width, K outputs of a task's head.
"""

import copy
from collections.abc import Iterator, Set
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

from stream.data.batch import Batch, TokenBatch
from stream.data.shared_classes import SharedClasses
from stream.data.task import SHARED_HEAD, Task
from stream.distributed.gradients import SharedGradients
from stream.models.encoder import Encoder
from stream.models.heads import Head, SharedHead, States
from stream.models.modules.by_task import ByTask
from stream.models.precision import Precision
from stream.seeding import torch_generator

HEAD_STD = 0.02  # adapter-bert's and BERT's own


class TaskModel(nn.Module):
    """An encoder, and for each task met so far a head: dropout, then a linear map D -> K.

    The head of a span task maps every token to 2 logits, without dropout (BERT, Devlin et al. 2019,
    arXiv 1810.04805, section 4.2, and its run_squad.py).
    """

    def __init__(
        self,
        encoder: Encoder,
        seed: int,
        dropout: float = 0.1,
        *,
        precision: str = "float32",
        mask: str = "none",
        storage: str = "float32",
    ):
        """Take the encoder.

        Args:
            encoder: in float32.
            seed: of the heads' first weights.
            dropout: before the heads.
            precision: in which the encoder computes: ``float32`` or ``bf16``.
            mask: that of `SharedHeadConfig`.
            storage: that of `BackboneConfig`.
        """
        super().__init__()
        self.learning: Set[str] = frozenset()
        """The tasks whose rows are new: with a shared head, `mask` is for them alone."""
        self._mask = mask
        self._of_task: dict[str, torch.Tensor] = {}  # bool [K], where the mask is of the task
        self.storage = storage
        """How weights are stored that learning does not change."""
        self._precision = Precision(encoder, in_bf16=precision == "bf16")
        self.gradients: SharedGradients | None = None
        """Averages gradients over ranks; None where there is one alone."""
        self.encoder = encoder
        self.heads = ByTask()
        self._resting: dict[str, Head] = {}  # by task, and no modules of this one
        self.dropout = nn.Dropout(dropout)
        self._seed = seed

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.encoder.parameters()).device

    def add_head(self, task: Task) -> None:
        """Add the task's head unless it is there; its first weights depend on the name alone.

        One that rests comes back. A regression head starts at the middle of the score range, so
        that the loss starts at the labels' variance instead of their square.
        """
        if task.shared is not None:
            self._meet_task(task.name, task.shared)
            return
        if task.name in self.heads:
            return
        head = self._resting.pop(task.name, None) or self._new_head(task)
        self.heads[task.name] = head.to(self.device).train(self.training)

    def _new_head(self, task: Task) -> Head:
        """Return the task's head before it has learned anything."""
        head = Head(self.encoder.width, task.num_outputs)
        self._draw(head.weight, task.name)
        middle = sum(task.spec.score_range) / 2 if task.spec.score_range else 0.0
        nn.init.constant_(head.bias, middle)
        return head.requires_grad_(requires_grad=False)

    def rest_heads(self, *, but: str) -> None:
        """Take all heads but one out of the model, into main memory, until they are needed."""
        for name in [name for name in self.heads if name != but]:
            head = self.head(name)
            del self.heads[name]
            head.zero_grad(set_to_none=True)
            self._resting[name] = head.cpu().requires_grad_(requires_grad=False)

    def _draw(self, weights: torch.Tensor, name: str) -> None:
        """Draw first weights in place; they depend on the name alone."""
        generator = torch_generator(self._seed, "head", name)
        nn.init.trunc_normal_(
            weights, std=HEAD_STD, a=-2 * HEAD_STD, b=2 * HEAD_STD, generator=generator
        )

    def _meet_task(self, task: str, shared: SharedClasses) -> None:
        """Add what the shared head lacks of the classes of a task, and the task's mask."""
        met = self.num_met()
        new = {place for place in shared.places if place >= met}
        assert new == set(range(met, met + len(new))), "tasks are met in the order of the stream"
        self.meet(shared, met + len(new))
        if self._mask == "task":
            own = torch.zeros(len(shared.names), dtype=torch.bool)
            own[list(shared.places)] = True
            self._of_task[task] = own.to(self.device)

    def num_met(self) -> int:
        """Return how many classes the shared head has met."""
        return self.head(SHARED_HEAD).outputs if SHARED_HEAD in self.heads else 0

    def meet(self, shared: SharedClasses, count: int) -> None:
        """Give the shared head a row for each of the first ``count`` classes of the stream."""
        met = self.num_met()
        if count <= met:
            return
        rows = torch.empty(count - met, self.encoder.width)
        for row, name in zip(rows, shared.names[met:count], strict=True):
            self._draw(row, name)
        rows = rows.to(self.device)
        head = self.heads[SHARED_HEAD] if met else None
        new = SharedHead(rows, len(shared.names))
        grown = head.grown(rows) if isinstance(head, SharedHead) else new
        self.heads[SHARED_HEAD] = grown.train(self.training).requires_grad_(requires_grad=False)

    def forget_head(self, name: str) -> None:
        """Keep no head of a task that was met."""
        if self._resting.pop(name, None) is None:
            del self.heads[name]

    @contextmanager
    def headed(self, task: Task) -> Iterator[None]:
        """Have a head for a task inside the block, learned or not.

        Afterwards all heads are as they were. A shared head meets no class here: it answers among
        those met so far, and, while there are none, among all of the stream by their first weights.
        """
        if task.shared is not None:
            with self._shared_headed(task.shared):
                yield
        elif task.name in self.heads:
            yield
        else:
            rests = self._resting.get(task.name)
            # A copy, on another device; on the same one what rests is what serves.
            head = self._new_head(task) if rests is None else rests
            there = head if head.weight.device == self.device else copy.deepcopy(head)
            self.heads[task.name] = there.to(self.device).train(self.training)
            try:
                yield
            finally:
                del self.heads[task.name]

    @contextmanager
    def _shared_headed(self, shared: SharedClasses) -> Iterator[None]:
        """Have a head of all classes inside the block, if none was met so far."""
        if self.num_met():
            yield
            return
        self.meet(shared, len(shared.names))
        try:
            yield
        finally:
            del self.heads[SHARED_HEAD]

    def head_state(self, name: str) -> dict[str, torch.Tensor]:
        """Return the tensors of a head, one that rests too, by their names in this model."""
        head = self.head(name) if name in self.heads else self._resting[name]
        return {f"heads.{name}.{key}": rows for key, rows in head.state().items()}

    def head(self, name: str) -> Head:
        """Return a head of the model: `Task.head_name` says which one answers a task."""
        head = self.heads[name]
        assert isinstance(head, Head)
        return head

    def forward(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits of each part through its own head: a list of [B_part, K].

        Those of a span task are [B_part, 2 L]: of each token as first one of the answer, and as
        last one; `Head.NEVER` on padding. New rows of a shared head see, while learning, the
        classes alone that `SharedHeadConfig.mask` lets them choose between.
        """
        return self.answers(self.states(batch), batch)

    def answers(self, states: States, batch: Batch) -> list[torch.Tensor]:
        """Return the logits of each part from the states of the whole batch, as `forward`."""
        return [
            self._masked(
                part.task, self.answer(part.task, states.of(slice(part.start, part.stop))), labels
            )
            for part, labels in zip(batch.parts, batch.all_labels, strict=True)
        ]

    def _masked(self, task: Task, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the logits [B, K] of a part, with `Head.NEVER` where the mask hides a class."""
        applies = self.training and task.shared is not None and task.name in self.learning
        if self._mask == "none" or not applies:
            return logits
        seen = self._of_task[task.name] if self._mask == "task" else occurring(labels, logits)
        return logits.masked_fill(~seen, Head.NEVER)

    def states(self, batch: TokenBatch) -> States:
        """Return what heads read."""
        texts, tokens = self._precision.encoder_now().states(batch)
        return States(self.dropout(texts.float()), tokens, batch.attention_mask)

    def answer(self, task: Task, states: States) -> torch.Tensor:
        """Return the logits of a task's head, [B, K], or [B, 2 L] of a span task."""
        head = self.heads[task.head_name]
        if not task.is_span:
            return head(states.texts)
        ends = head(states.tokens.float())  # [B, L, 2]
        return ends.masked_fill(states.mask[..., None] == 0, Head.NEVER).flatten(1)

    @property
    def in_bf16(self) -> bool:
        """Whether the encoder computes in bf16."""
        return self._precision.in_bf16

    @property
    def bf16_encoder(self) -> Encoder | None:
        """The bf16 copy that computes; None where there is none yet."""
        return self._precision.bf16_encoder

    def sync_bf16_copy(self) -> None:
        """Note that weights changed, or which ones are trained; before every task."""
        self._precision.sync_copy()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute in the model's precision inside the block; with gradients, those of one step."""
        with self._precision.computing(self._share_gradients):
            yield

    def _share_gradients(self, computes: Encoder) -> None:
        """Average gradients over ranks, after a backward pass through an encoder."""
        shared = self.gradients
        if shared is not None and shared.active and torch.is_grad_enabled():
            shared.finish(chain(computes.parameters(), self.parameters()))


def occurring(labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Return which of the K classes of ``logits`` [B, K] occur among ``labels`` [B], bool [K].

    Of tensor operations alone, so that a captured step asks it anew for every batch. Labels below
    0 fill up a batch and count as none.
    """
    none = logits.shape[1]
    seen = torch.zeros(none + 1, dtype=torch.bool, device=labels.device)
    return seen.index_fill(0, labels.where(labels >= 0, none), value=True)[:none]
