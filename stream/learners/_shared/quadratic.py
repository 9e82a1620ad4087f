"""A quadratic penalty that keeps weights near those of earlier tasks, in constant memory.

With anchors a_t and importances F_t of tasks t, P(x) = 1/2 sum_t F_t (x - a_t)^2, summed over all
entries. Its gradient needs no copy a task: with a the newest anchor, F = sum_t F_t and
G = sum_t F_t (a - a_t), it is F (x - a) + G. All tensors have the shapes of the parameters. Between
tasks a is where the parameters stand, so that only F and G are kept besides.
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
                pull = self._weight[name] * (new - self._anchor[name])
                self._pull[name] = pull + self._pull[name] if name in self._pull else pull
                self._weight[name] += importance[name]
            else:
                self._weight[name] = importance[name].clone()
            self._anchor[name] = new

    def replace(self, values: Named, importance: Named, decay: float) -> None:
        """Keep one anchor alone: ``values``; the importance so far counts ``decay`` times."""
        for name, value in values.items():
            before = self._weight.get(name)
            new = importance[name].clone()
            self._weight[name] = new if before is None else decay * before + new
            self._anchor[name] = value.detach().clone()  # alone, so that nothing pulls elsewhere

    def gradient(self, name: str, value: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of P with respect to one parameter; None before the first task."""
        if name not in self._anchor:
            return None
        gradient = self._weight[name] * (value - self._anchor[name])
        return gradient + self._pull[name] if name in self._pull else gradient

    def add_gradient(self, parameters: Mapping[str, torch.nn.Parameter], strength: float) -> None:
        """Add ``strength`` times the gradient of P to the parameters' gradients."""
        with torch.no_grad():
            for name, parameter in parameters.items():
                gradient = self.gradient(name, parameter)
                if gradient is not None and parameter.grad is not None:
                    parameter.grad.add_(gradient, alpha=strength)

    def state(self) -> dict[str, torch.Tensor]:
        """Return what is kept between tasks, by name."""
        groups = {"weight": self._weight, "pull": self._pull}
        return {f"{key}.{n}": t for key, group in groups.items() for n, t in group.items()}

    def load(self, state: Named, values: Named) -> None:
        """Take the tensors of `state`, with the anchor at ``values``."""
        groups = {"weight": self._weight, "pull": self._pull}
        for name, tensor in state.items():
            key, _, parameter = name.partition(".")
            groups[key][parameter] = tensor
        self.move_anchor({name: values[name] for name in self._weight})

    @property
    def anchor(self) -> dict[str, torch.Tensor]:
        """Where the parameters stood after the newest task, by name."""
        return self._anchor

    def move_anchor(self, values: Named) -> None:
        """Put the anchor elsewhere: while a task is learned, parameters have left it."""
        self._anchor = {name: value.detach().clone() for name, value in values.items()}
