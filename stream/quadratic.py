"""A quadratic penalty that keeps weights near those of earlier tasks, in constant memory.

With anchors a_t and importances F_t of tasks t, P(x) = 1/2 sum_t F_t (x - a_t)^2, summed over all
entries. Its gradient needs no copy a task: with a the newest anchor, F = sum_t F_t and
G = sum_t F_t (a - a_t), it is F (x - a) + G. All tensors have the shapes of the parameters.
"""

from collections.abc import Mapping

import torch

Named = Mapping[str, torch.Tensor]


class Quadratic:
    """The penalty of the tasks so far; nothing before the first."""

    def __init__(self) -> None:
        self._anchor: dict[str, torch.Tensor] = {}
        self._weight: dict[str, torch.Tensor] = {}
        self._pull: dict[str, torch.Tensor] = {}

    def add(self, values: Named, importance: Named) -> None:
        """Add a task: its anchor is ``values``, its importance ``importance``."""
        for name, value in values.items():
            new = value.detach().clone()
            if name in self._anchor:
                self._pull[name] += self._weight[name] * (new - self._anchor[name])
                self._weight[name] += importance[name]
            else:
                self._pull[name] = torch.zeros_like(new)
                self._weight[name] = importance[name].clone()
            self._anchor[name] = new

    def replace(self, values: Named, importance: Named, decay: float) -> None:
        """Keep one anchor alone: ``values``; the importance so far counts ``decay`` times."""
        for name, value in values.items():
            before = self._weight.get(name)
            new = importance[name].clone()
            self._weight[name] = new if before is None else decay * before + new
            self._anchor[name] = value.detach().clone()
            self._pull[name] = torch.zeros_like(self._anchor[name])

    def gradient(self, name: str, value: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of P with respect to one parameter; None before the first task."""
        if name not in self._anchor:
            return None
        return self._weight[name] * (value - self._anchor[name]) + self._pull[name]

    def add_gradient(self, parameters: Mapping[str, torch.nn.Parameter], strength: float) -> None:
        """Add ``strength`` times the gradient of P to the parameters' gradients."""
        with torch.no_grad():
            for name, parameter in parameters.items():
                gradient = self.gradient(name, parameter)
                if gradient is not None and parameter.grad is not None:
                    parameter.grad.add_(gradient, alpha=strength)

    def state(self) -> dict[str, torch.Tensor]:
        """Return all tensors, by name."""
        groups = {"anchor": self._anchor, "weight": self._weight, "pull": self._pull}
        return {f"{key}.{n}": t for key, group in groups.items() for n, t in group.items()}

    def load(self, state: Named) -> None:
        """Take the tensors of `state`."""
        groups = {"anchor": self._anchor, "weight": self._weight, "pull": self._pull}
        for name, tensor in state.items():
            key, _, parameter = name.partition(".")
            groups[key][parameter] = tensor
