"""The model that learners train: one encoder and a linear head a task, or one for all tasks.

The heads of isolated tasks rest while they are not needed (`TaskModel.rest_heads`): they are no
part of the model then, and in main memory, so that a step takes as long after a thousand tasks as
after one.

B examples, L tokens, D width, K outputs of a task's head.
"""

import copy
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from stream.data.batch import Batch, TokenBatch
from stream.data.shared_classes import SharedClasses
from stream.data.task import SHARED_HEAD, Task
from stream.distributed.gradients import SharedGradients
from stream.errors import require
from stream.models.bf16 import Bf16Encoder, to_bf16
from stream.models.encoder import Encoder
from stream.models.four_bit import quantize_linears
from stream.models.modules.by_task import ByTask
from stream.models.repeatable_attention import repeatable_attention
from stream.seeding import torch_generator

HEAD_STD = 0.02  # adapter-bert's and BERT's own
# Without cuDNN's, which takes 0.1 to 0.2 s to plan for every new shape of a batch, and whose
# gradients for long texts do not repeat.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Head(nn.Linear):
    """A linear map D -> K of a task's ``outputs``; K may be more while it learns.

    Rows behind the task's own have weight 0 and a bias so low that their probability is exactly 0
    in float32. So they change no loss and get no gradient.
    """

    NEVER = -1e9

    def __init__(self, width: int, outputs: int, room: int | None = None):
        super().__init__(width, room or outputs)
        self.outputs = outputs

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map features [..., D] to the logits: [..., K] while learning, else [..., outputs]."""
        logits = super().forward(input)
        return logits if self.training else logits[..., : self.outputs]

    def state(self) -> dict[str, torch.Tensor]:
        """Return the task's own rows of ``weight`` and ``bias``."""
        return {name: p.detach()[: self.outputs] for name, p in self.named_parameters()}

    def take(self, other: "Head") -> None:
        """Take the rows of another task's head that has at most as many."""
        self.outputs = other.outputs
        with torch.no_grad():
            self.weight.zero_()
            self.bias.fill_(self.NEVER)
            for name, rows in self.state().items():
                rows.copy_(other.state()[name])


class SharedHead(Head):
    """One linear map for the ``total`` classes of a stream, with a row for each that was met.

    A class that is not met has no weights at all, so nothing can change them before; its logit is
    so low that its probability is exactly 0 in float32.
    """

    def __init__(self, rows: torch.Tensor, total: int):
        """Start with the first ``rows`` [M, D] of the classes met, whose biases are 0."""
        met, width = rows.shape
        super().__init__(width, met)
        self.total = total
        self.weight = nn.Parameter(rows)
        self.bias = nn.Parameter(torch.zeros_like(rows[:, 0]))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map features [..., D] to the logits: [..., total] while learning, else [..., M]."""
        logits = functional.linear(input, self.weight, self.bias)
        if not self.training:
            return logits
        return functional.pad(logits, (0, self.total - self.outputs), value=self.NEVER)

    def grown(self, rows: torch.Tensor) -> "SharedHead":
        """Return a head with ``rows`` [more, D] behind its own, for classes that are met now."""
        head = SharedHead(torch.cat([self.weight.detach(), rows]), self.total)
        with torch.no_grad():
            head.bias[: self.outputs] = self.bias
        return head.train(self.training)


class States(NamedTuple):
    """What heads read: float32 [B, D] behind a dropout, [B, L, D] a token, and the mask [B, L]."""

    texts: torch.Tensor
    tokens: torch.Tensor
    mask: torch.Tensor

    def of(self, rows: slice) -> "States":
        """Return those of some rows."""
        if rows.start == 0 and rows.stop == len(self.texts):  # a slice goes back in two kernels
            return self
        return States(*(tensor[rows] for tensor in self))


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
        self.in_bf16 = precision == "bf16"
        """Whether the encoder computes in bf16."""
        self.storage = storage
        """How weights are stored that learning does not change."""
        self._half: Bf16Encoder | None = None
        self._computes: Bf16Encoder | None = None
        self._took = False
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

    def answers(self, states: "States", batch: Batch) -> list[torch.Tensor]:
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
        encoder = self.encoder
        if self._computes is not None:
            if not self._took:  # not before: a learner may change weights for the step alone
                self._computes.read_trained()
                self._took = True
            encoder = self._computes.encoder
        texts, tokens = encoder.states(batch)
        return States(self.dropout(texts.float()), tokens, batch.attention_mask)

    def answer(self, task: Task, states: States) -> torch.Tensor:
        """Return the logits of a task's head, [B, K], or [B, 2 L] of a span task."""
        head = self.heads[task.head_name]
        if not task.is_span:
            return head(states.texts)
        ends = head(states.tokens.float())  # [B, L, 2]
        return ends.masked_fill(states.mask[..., None] == 0, Head.NEVER).flatten(1)

    @property
    def bf16_encoder(self) -> Encoder | None:
        """The bf16 copy that computes; None where there is none yet."""
        return None if self._half is None else self._half.encoder

    def store_unchanged(self, names: Collection[str], learner: str) -> None:
        """Store weights of the encoder that learning does not change as ``backbone.storage`` says.

        Args:
            names: what they are called in the encoder.
            learner: the method's name, for the message.

        Raises:
            UserError: learning changes all that a prediction reads, so the setting has no effect;
                or 4 bits are not possible here.
        """
        if self.storage == "float32":
            return
        require(
            any(map(self.encoder.reads, names)),
            f"backbone.storage={self.storage} has no effect with learner={learner}, which trains "
            "every weight of the encoder",
        )
        if self.storage == "nf4":
            quantize_linears(self.encoder, self.encoder.layers(), names)
        to_bf16(self.encoder, names)

    def sync_bf16_copy(self) -> None:
        """Note that weights changed, or which ones are trained; before every task."""
        if self.in_bf16:
            self._half = self._half or Bf16Encoder(self.encoder)
            self._half.read_all()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute in the model's precision inside the block; with gradients, those of one step."""
        learns_on_gpu = self.device.type == "cuda" and torch.is_grad_enabled()
        repeats = repeatable_attention() if learns_on_gpu else nullcontext()
        if not self.in_bf16:
            with repeats:
                yield
            self._share_gradients(self.encoder)
            return
        if self._half is None or not torch.is_grad_enabled():
            self.sync_bf16_copy()
        assert self._half is not None
        self._computes, self._took = self._half, not torch.is_grad_enabled()
        try:
            with sdpa_kernel(ATTENTION), repeats:
                yield
        finally:
            self._computes = None
        self._half.make_gradients()  # all that are shared have to be there
        self._share_gradients(self._half.encoder)
        if torch.is_grad_enabled():
            self._half.give_gradients()

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


def joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a task's logits of several batches as one tensor; of spans, as wide as the widest."""
    most = max(part.shape[1] for part in parts)
    if any(part.shape[1] < most for part in parts):
        parts = [functional.pad(p, (0, most - p.shape[1]), value=Head.NEVER) for p in parts]
    return torch.cat(list(parts))
