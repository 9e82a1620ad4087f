"""The parameters that each task owns inside the one encoder that serves them all.

The encoder has one working copy of every such parameter. A task's own values are copied into it to
learn or serve that task, so a switch is a copy in place: no module is exchanged, and no pointer
changes.
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
        self._stored: dict[str, Tensors] = {}
        self.first = self._copy()
        self.active: str | None = None

    def _copy(self) -> Tensors:
        """Copy the working tensors."""
        return {name: tensor.detach().clone() for name, tensor in self.working.items()}

    def _show(self, values: Tensors) -> None:
        """Copy values into the working tensors, in place."""
        copy_all(list(self.working.values()), [values[name] for name in self.working])

    def start(self, task: str, values: Tensors) -> None:
        """Give ``task`` the working copy, with these values."""
        self._show(values)
        self.active = task

    def store(self, task: str) -> None:
        """Keep the working copy as the values of ``task``."""
        assert self.active == task, f"{self.active} is being learned, not {task}"
        self._stored[task] = self._copy()

    def values(self, task: str) -> Tensors | None:
        """Return the values with which ``task`` is served; None if it was never started."""
        return self.tensors(task)

    def tensors(self, task: str) -> Tensors | None:
        """Return the own tensors of ``task``; None if it was never started."""
        if task in self._stored:
            return self._stored[task]
        return dict(self.working) if task == self.active else None

    def base(self, name: str, parameter: torch.Tensor) -> torch.Tensor:
        """Return what tasks share of the encoder's parameter ``name``."""
        return parameter

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
        self.start(task, dict(tensors))
        self.store(task)

    def forget(self, task: str) -> None:
        """Keep nothing of ``task``; another one is learned or served next."""
        self._stored.pop(task, None)
        self.active = None if self.active == task else self.active

    @contextmanager
    def holding(self, values: Tensors) -> Iterator[None]:
        """Put values into the working copy inside the block; afterwards it is as it was."""
        before = self._copy()
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
