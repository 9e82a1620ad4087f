"""A quadratic penalty that keeps weights near those of earlier tasks, in constant memory.

With anchors a_t and importances F_t of tasks t, P(x) = 1/2 sum_t F_t (x - a_t)^2, summed over all
entries. Its gradient needs no copy per task: with a the newest anchor, F = sum_t F_t and
G = sum_t F_t (a - a_t), it is F (x - a) + G. All tensors have the shapes of the parameters. Between
tasks a is where the parameters stand, so that only F and G are stored besides.
"""

from collections.abc import Mapping

import torch

Named = Mapping[str, torch.Tensor]


class QuadraticPenalty:
    """The penalty of the tasks so far; nothing before the first.

    Args:
        stored: where F (``weight.NAME``) and G (``pull.NAME``) are kept between tasks.
        working: where the newest anchor (``ANCHOR.NAME``) is kept while a task is learned.
        anchor: ANCHOR.
    """

    def __init__(
        self,
        stored: dict[str, torch.Tensor],
        working: dict[str, torch.Tensor],
        anchor: str = "anchor",
    ):
        self._stored = stored
        self._working = working
        self._anchor = anchor

    def begin(self, values: Named) -> None:
        """Anchor the penalty at ``values``, where the parameters stand before a task."""
        for name, value in values.items():
            self._working[f"{self._anchor}.{name}"] = value.detach().clone()
            for key in (f"weight.{name}", f"pull.{name}"):
                if key in self._stored:
                    self._stored[key] = grown(self._stored[key], value)

    def anchor(self, name: str) -> torch.Tensor:
        """Return the newest anchor of one parameter."""
        return self._working[f"{self._anchor}.{name}"]

    def add(self, values: Named, importance: Named) -> None:
        """Add a task: its anchor is ``values``, its importance ``importance``."""
        for name, value in values.items():
            weight, pull = f"weight.{name}", f"pull.{name}"
            if weight in self._stored:
                moved = self._stored[weight] * (value.detach() - self.anchor(name))
                before = self._stored.get(pull)
                self._stored[pull] = moved if before is None else moved + before
                self._stored[weight] = self._stored[weight] + importance[name]
            else:
                self._stored[weight] = importance[name].clone()
        self.begin(values)

    def replace(self, values: Named, importance: Named, decay: float) -> None:
        """Keep one anchor alone, ``values``; the importance so far counts ``decay`` times.

        Args:
            values: the parameters after the task.
            importance: F of the task.
            decay: factor of the importance of earlier tasks.
        """
        for name in values:
            before = self._stored.get(f"weight.{name}")
            new = importance[name].clone()
            self._stored[f"weight.{name}"] = new if before is None else decay * before + new
        self.begin(values)

    def gradient(self, name: str, value: torch.Tensor) -> torch.Tensor | None:
        """Return the gradient of P with respect to one parameter; None before the first task."""
        if f"weight.{name}" not in self._stored:
            return None
        gradient = self._stored[f"weight.{name}"] * (value - self.anchor(name))
        pull = self._stored.get(f"pull.{name}")
        return gradient if pull is None else gradient + pull

    def add_gradient(self, parameters: Mapping[str, torch.nn.Parameter], strength: float) -> None:
        """Add ``strength`` times the gradient of P to the parameters' gradients."""
        with torch.no_grad():
            for name, parameter in parameters.items():
                gradient = self.gradient(name, parameter)
                if gradient is not None and parameter.grad is not None:
                    parameter.grad.add_(gradient, alpha=strength)


def grown(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a tensor with as many rows as ``like``; rows that a shared head got since are 0."""
    more = len(like) - len(tensor) if like.ndim else 0
    return tensor if not more else torch.cat([tensor, tensor.new_zeros(more, *tensor.shape[1:])])
