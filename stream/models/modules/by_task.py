"""Modules by the names of tasks."""

from torch import nn


class ByTask(nn.ModuleDict):
    """A ModuleDict that takes every name of a task, also ``train`` and ``items``.

    torch refuses the names of a module's own attributes. Here modules are found by their key alone,
    so nothing is hidden by such a name.
    """

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Put a module under a name."""
        assert module is not None
        self._modules[name] = module
