"""The parameters that each task owns inside the one encoder that serves them all.

The encoder has one working copy of every such parameter. A task's own values are copied into it to
learn or serve that task, so a switch is a copy in place: no module is exchanged, and no pointer
changes. The values of all other tasks are in main memory, each task's in one block, which goes to
the encoder's device at once when it is needed there.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch

from stream.models.bf16 import copy_all
from stream.models.encoder import Encoder

Tensors = dict[str, torch.Tensor]


class TaskParameters:
    """What every task owns of the encoder, by task and name.

    Attributes:
        working: the working copy, by name.
        first: the values of the working copy before any task was learned.
        active: the task whose values are in the working copy.
    """

    def __init__(self, encoder: Encoder, names: Iterable[str]):
        wanted = set(names)
        self.working = {n: p for n, p in encoder.named_parameters() if n in wanted}
        missing = wanted - self.working.keys()
        assert not missing, f"no such parameters: {sorted(missing)}"
        assert len({p.dtype for p in self.working.values()}) <= 1, "what tasks own is of one type"
        self._blocks: dict[str, torch.Tensor] = {}  # by task: all of its values, one after another
        self.first = {name: tensor.detach().clone() for name, tensor in self.working.items()}
        self.active: str | None = None

    def _block(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return a copy of the values of all working tensors as one flat tensor."""
        flat = [tensors[name].detach().reshape(-1) for name in self.working]
        return torch.cat(flat) if flat else torch.empty(0)

    def _named(self, block: torch.Tensor) -> Tensors:
        """Return the tensors of a block by name; they are views of it."""
        pieces = block.split([tensor.numel() for tensor in self.working.values()])
        named = zip(self.working.items(), pieces, strict=True)
        return {name: piece.view(tensor.shape) for (name, tensor), piece in named}

    def _show(self, values: Mapping[str, torch.Tensor]) -> None:
        """Copy values into the working tensors, in place."""
        copy_all(list(self.working.values()), [values[name] for name in self.working])

    def start(self, task: str, values: Mapping[str, torch.Tensor]) -> None:
        """Give ``task`` the working copy, with these values."""
        self._show(values)
        self.active = task

    def store(self, task: str) -> None:
        """Keep the working copy as the values of ``task``."""
        assert self.active == task, f"{self.active} is being learned, not {task}"
        # Pageable: pinned blocks would take main memory from all other programs for good, and one
        # block goes over at once anyway.
        self._blocks[task] = self._block(self.working).cpu()

    def values(self, task: str) -> Tensors | None:
        """Return the values with which a stored task is served; None if there are none."""
        if task not in self._blocks:
            return None
        device = next((tensor.device for tensor in self.working.values()), None)
        return self._named(self._blocks[task].to(device))

    def tensors(self, task: str) -> Tensors | None:
        """Return the own tensors of ``task``, in main memory; None if it was never started.

        Those of a task that is being learned are the working ones.
        """
        if task in self._blocks:
            return self._named(self._blocks[task])
        return dict(self.working) if task == self.active else None

    def common(self, parameters: Mapping[str, torch.Tensor]) -> Tensors:
        """Return what serves every task of the encoder's ``parameters``."""
        return {name: tensor for name, tensor in parameters.items() if name not in self.working}

    def load(self, task: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the own tensors of a task that was learned before, and serve it.

        Raises:
            KeyError, ValueError: a tensor is missing or has another shape.
        """
        if self.working.keys() != tensors.keys():
            odd = sorted(self.working.keys() ^ tensors.keys())
            raise KeyError(f"{len(odd)} names differ, the first is encoder.{odd[0]}")
        for name, tensor in self.working.items():
            if tensor.shape != tensors[name].shape:
                shapes = tuple(tensors[name].shape), tuple(tensor.shape)
                raise ValueError(f"encoder.{name} has shape {shapes[0]}, expected {shapes[1]}")
        self.start(task, tensors)
        self.store(task)

    def forget(self, task: str) -> None:
        """Keep nothing of ``task``; another one is learned or served next."""
        self._blocks.pop(task, None)
        self.active = None if self.active == task else self.active

    @contextmanager
    def holding(self, values: Tensors) -> Iterator[None]:
        """Put values into the working copy inside the block; afterwards it is as it was."""
        before = self._named(self._block(self.working))
        self._show(values)
        try:
            yield
        finally:
            self._show(before)


def copy_named(stored: Mapping[str, torch.Tensor], into: Mapping[str, torch.Tensor]) -> None:
    """Copy stored tensors into those of the same names, in place.

    Raises:
        ValueError: a tensor of another shape.
    """
    with torch.no_grad():
        for name, tensor in into.items():
            if tensor.shape != stored[name].shape:
                shapes = tuple(stored[name].shape), tuple(tensor.shape)
                raise ValueError(f"{name} has shape {shapes[0]}, expected {shapes[1]}")
            tensor.copy_(stored[name])
