"""The ledger: what a learner trains for each task, and what it must store to serve them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

State = Mapping[str, "torch.Tensor"]


def count_stored(states: Iterable[State]) -> tuple[int, int]:
    """Return (parameters, bytes) of the union of ``states``; a shared tensor counts once.

    Tensors are the same where they share memory and shape, whatever their names.
    """
    seen = {id(tensor): tensor for state in states for tensor in state.values()}
    unique = {(t.device, t.data_ptr(), tuple(t.shape)): t for t in seen.values()}
    numbers = [tensor for tensor in unique.values() if tensor.is_floating_point()]
    parameters = sum(tensor.numel() for tensor in numbers)  # places of sparse ones are bytes alone
    return parameters, sum(tensor.numel() * tensor.element_size() for tensor in unique.values())


@dataclass(frozen=True)
class LedgerRow:
    """The account after one task.

    Attributes:
        trained_parameters: parameters that learning this task could change.
        trained_fraction: of the whole pretrained model; the paper's percentages use
            ``trained_fraction_of_layers`` (encoder layers, without embeddings and pooler).
        stored_parameters: all that serving every task so far, and learning the next, needs.
        stored_bytes: the same in bytes, without the buffer.
        buffer_examples: remembered examples of earlier tasks.
        buffer_bytes: their bytes.
    """

    task: str
    trained_parameters: int
    trained_fraction: float
    trained_fraction_of_layers: float
    stored_parameters: int
    stored_bytes: int
    buffer_examples: int
    buffer_bytes: int


@dataclass
class Ledger:
    """The account of a run: the base, and a row a task."""

    base_parameters: int
    encoder_layer_parameters: int
    rows: list[LedgerRow] = field(default_factory=list)

    def add(
        self, task: str, trained: int, states: Iterable[State], buffer: tuple[int, int]
    ) -> None:
        """Append the row of ``task``; ``buffer`` is (examples, bytes)."""
        parameters, size = count_stored(states)
        self.rows.append(
            LedgerRow(
                task=task,
                trained_parameters=trained,
                trained_fraction=trained / self.base_parameters,
                trained_fraction_of_layers=trained / self.encoder_layer_parameters,
                stored_parameters=parameters,
                stored_bytes=size,
                buffer_examples=buffer[0],
                buffer_bytes=buffer[1],
            )
        )

    def as_json(self) -> dict[str, Any]:
        """Return the ledger as JSON values; ``total_multiple`` is null before the first task."""
        total = self.rows[-1].stored_parameters / self.base_parameters if self.rows else None
        return {
            "base_parameters": self.base_parameters,
            "encoder_layer_parameters": self.encoder_layer_parameters,
            "total_multiple": total,
            "tasks": [dict(vars(row)) for row in self.rows],
        }
