"""The model that learners train: one encoder and a linear head a task.

B examples, L tokens, D width, K outputs of a task's head.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from stream.data.batches import Batch, TokenBatch
from stream.data.task import Task
from stream.models.bf16 import Bf16Encoder
from stream.models.encoder import Encoder
from stream.models.modules.by_task import ByTask
from stream.seeding import torch_generator

HEAD_STD = 0.02  # adapter-bert's and BERT's own
# Without cuDNN's, which takes 0.1 to 0.2 s to plan for every new shape of a batch.
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


class States(NamedTuple):
    """What heads read: float32 [B, D] behind a dropout, [B, L, D] a token, and the mask [B, L]."""

    texts: torch.Tensor
    tokens: torch.Tensor
    mask: torch.Tensor

    def of(self, rows: slice) -> "States":
        """Return those of some rows."""
        return States(*(tensor[rows] for tensor in self))


class TaskModel(nn.Module):
    """An encoder, and for each task met so far a head: dropout, then a linear map D -> K.

    The head of a span task maps every token to 2 logits, without dropout (BERT, Devlin et al. 2019,
    arXiv 1810.04805, section 4.2, and its run_squad.py).
    """

    def __init__(
        self, encoder: Encoder, seed: int, dropout: float = 0.1, *, precision: str = "float32"
    ):
        super().__init__()
        self.in_bf16 = precision == "bf16"
        """Whether the encoder computes in bf16."""
        self._half: Bf16Encoder | None = None
        self._computes: Bf16Encoder | None = None
        self._took = False
        self.encoder = encoder
        self.heads = ByTask()
        self.dropout = nn.Dropout(dropout)
        self._seed = seed

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.encoder.parameters()).device

    def add_head(self, task: Task) -> None:
        """Add the task's head unless it is there; its first weights depend on the name alone.

        A regression head starts at the middle of the score range, so that the loss starts at the
        labels' variance instead of their square.
        """
        if task.name in self.heads:
            return
        generator = torch_generator(self._seed, "head", task.name)
        head = Head(self.encoder.width, task.num_outputs)
        nn.init.trunc_normal_(
            head.weight, std=HEAD_STD, a=-2 * HEAD_STD, b=2 * HEAD_STD, generator=generator
        )
        middle = sum(task.spec.score_range) / 2 if task.spec.score_range else 0.0
        nn.init.constant_(head.bias, middle)
        self.heads[task.name] = head.to(self.device).requires_grad_(requires_grad=False)

    def sort_heads(self, names: Sequence[str]) -> None:
        """Put the heads there are in the order of ``names``: sums over all follow it."""
        found = {name: self.heads[name] for name in names if name in self.heads}
        self.heads.clear()
        self.heads.update(found)

    def head_state(self, task: str) -> dict[str, torch.Tensor]:
        """Return the tensors of a task's head by their names in this model."""
        return {f"heads.{task}.{name}": rows for name, rows in self.head(task).state().items()}

    def head(self, task: str) -> Head:
        """Return a task's head."""
        head = self.heads[task]
        assert isinstance(head, Head)
        return head

    def forward(self, batch: Batch) -> list[torch.Tensor]:
        """Return the logits of each part through its own head: a list of [B_part, K].

        Those of a span task are [B_part, 2 L]: of each token as first one of the answer, and as
        last one; `Head.NEVER` on padding.
        """
        return self.answers(self.states(batch), batch)

    def answers(self, states: "States", batch: Batch) -> list[torch.Tensor]:
        """Return the logits of each part from the states of the whole batch, as `forward`."""
        return [
            self.answer(part.task, states.of(slice(part.start, part.stop))) for part in batch.parts
        ]

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
        head = self.heads[task.name]
        if not task.is_span:
            return head(states.texts)
        ends = head(states.tokens.float())  # [B, L, 2]
        return ends.masked_fill(states.mask[..., None] == 0, Head.NEVER).flatten(1)

    def sync_bf16_copy(self) -> None:
        """Note that weights changed, or which ones are trained; before every task."""
        if self.in_bf16:
            self._half = self._half or Bf16Encoder(self.encoder)
            self._half.read_all()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute in the model's precision inside the block; with gradients, those of one step."""
        if not self.in_bf16:
            yield
            return
        if self._half is None or not torch.is_grad_enabled():
            self.sync_bf16_copy()
        assert self._half is not None
        self._computes, self._took = self._half, not torch.is_grad_enabled()
        try:
            with sdpa_kernel(ATTENTION):
                yield
        finally:
            self._computes = None
        if torch.is_grad_enabled():
            self._half.give_gradients()


def joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a task's logits of several batches as one tensor; of spans, as wide as the widest."""
    most = max(part.shape[1] for part in parts)
    if any(part.shape[1] < most for part in parts):
        parts = [functional.pad(p, (0, most - p.shape[1]), value=Head.NEVER) for p in parts]
    return torch.cat(list(parts))
