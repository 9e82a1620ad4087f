"""What each task owns, kept as sparse differences from what all tasks start with.

A difference is stored as flat places (int32 [n]) and values (float32 [n]) a tensor, and applied
exactly: what is served is always first + difference, computed in this order.
"""

from collections.abc import Iterable, Mapping

import torch

from stream.models.encoder import Encoder
from stream.models.task_parameters import TaskParameters, Tensors


class SparseTaskParameters(TaskParameters):
    """A `TaskParameters` whose own tensors are ``NAME.indices`` and ``NAME.values``."""

    def __init__(self, encoder: Encoder, names: Iterable[str]):
        super().__init__(encoder, names)
        self._stored: dict[str, Tensors] = {}

    def store(self, task: str) -> None:
        """Keep the difference of the working copy, and serve exactly that."""
        assert self.active == task, f"{self.active} is being learned, not {task}"
        found = self._differences()
        self._stored[task] = {name: tensor.cpu() for name, tensor in found.items()}
        self._show(self._applied(found))

    def _differences(self) -> Tensors:
        """Return the working copy's difference; tensors without any are left out."""
        found = {}
        for name, tensor in self.working.items():
            change = (tensor.detach() - self.first[name]).reshape(-1)
            places = change.nonzero()[:, 0]
            if len(places):
                found[f"{name}.indices"] = places.to(torch.int32)
                found[f"{name}.values"] = change[places]
        return found

    def _applied(self, differences: Mapping[str, torch.Tensor]) -> Tensors:
        """Return dense values: the first ones, and a difference."""
        values = dict(self.first)
        for name in self.working:
            if f"{name}.indices" in differences:
                dense = self.first[name].clone()
                flat = dense.view(-1)
                places = differences[f"{name}.indices"].to(flat.device).long()
                flat[places] = flat[places] + differences[f"{name}.values"].to(flat.device)
                values[name] = dense
        return values

    def values(self, task: str) -> Tensors | None:
        """Return the dense values with which a stored task is served; None if there are none."""
        return self._applied(self._stored[task]) if task in self._stored else None

    def tensors(self, task: str) -> Tensors | None:
        """Return the difference of ``task``; None if it was never started."""
        if task in self._stored:
            return self._stored[task]
        return self._differences() if task == self.active else None

    def common(self, parameters: Mapping[str, torch.Tensor]) -> Tensors:
        """Return what serves every task: the first values, which all differences are from."""
        return {name: self.first.get(name, tensor) for name, tensor in parameters.items()}

    def load(self, task: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the difference of a task that was learned before, and serve it.

        Raises:
            KeyError, ValueError: it is of other tensors, or of places that they do not have.
        """
        names = {name.rpartition(".")[0] for name in tensors}
        odd = [n for n in sorted(names) if n not in self.working or f"{n}.values" not in tensors]
        odd += [n for n in tensors if n.rpartition(".")[2] not in ("indices", "values")]
        if odd:
            raise KeyError(f"{len(odd)} names differ, the first is encoder.{odd[0]}")
        for name in names:
            places, values = tensors[f"{name}.indices"], tensors[f"{name}.values"]
            size = self.working[name].numel()
            inside = not len(places) or (int(places.min()) >= 0 and int(places.max()) < size)
            if places.shape != values.shape or not inside:
                raise ValueError(f"encoder.{name}: places and values do not fit {size} entries")
        self._stored[task] = {name: tensor.cpu() for name, tensor in tensors.items()}
        self.start(task, self._applied(self._stored[task]))

    def forget(self, task: str) -> None:
        """Keep nothing of ``task``; another one is learned or served next."""
        self._stored.pop(task, None)
        super().forget(task)
