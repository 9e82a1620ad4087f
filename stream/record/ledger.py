"""The ledger: what a learner trains for each task, and what it must store to serve them all."""

from dataclasses import dataclass

import msgspec


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
        router_parameters: numbers that a router stores besides: means, covariance, and what the
            learner does not keep of the pretrained encoder; 0 where the task is known.
        router_bytes: the same in bytes.
    """

    task: str
    trained_parameters: int
    trained_fraction: float
    trained_fraction_of_layers: float
    stored_parameters: int
    stored_bytes: int
    buffer_examples: int
    buffer_bytes: int
    router_parameters: int = 0
    router_bytes: int = 0


class LedgerRecord(msgspec.Struct, kw_only=True):
    """The account of a run: the pretrained encoder, and a row per learned task.

    Attributes:
        total_multiple: all that is stored after the last task but for a router, as a multiple of
            the encoder; null before the first.
    """

    base_parameters: int
    encoder_layer_parameters: int
    total_multiple: float | None = None
    tasks: list[LedgerRow] = []

    def add(
        self,
        task: str,
        trained: int,
        stored: tuple[int, int],
        buffer: tuple[int, int],
        router: tuple[int, int] = (0, 0),
    ) -> None:
        """Append the row of a task that was just learned.

        Args:
            task: its name.
            trained: parameters that learning it could change.
            stored: (parameters, bytes) of all that is stored now, without the buffer.
            buffer: (examples, bytes) that are remembered now.
            router: (numbers, bytes) that a router stores besides.
        """
        self.tasks.append(
            LedgerRow(
                task=task,
                trained_parameters=trained,
                trained_fraction=trained / self.base_parameters,
                trained_fraction_of_layers=trained / self.encoder_layer_parameters,
                stored_parameters=stored[0],
                stored_bytes=stored[1],
                buffer_examples=buffer[0],
                buffer_bytes=buffer[1],
                router_parameters=router[0],
                router_bytes=router[1],
            )
        )
        self.total_multiple = stored[0] / self.base_parameters
