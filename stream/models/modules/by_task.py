"""Modules by the names of tasks."""

from torch import nn


class ByTask(nn.ModuleDict):
    """A ModuleDict that takes every name of a task, also ``train`` and ``items``.

    torch refuses the names of a module's own attributes. Here modules are found by their key alone,
    so nothing is hidden by such a name. Whatever stands in one inside the encoder belongs to the
    task of its key (`stream.learners.hooks`).
    """

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Put a module under a name."""
        assert module is not None
        self._modules[name] = module


def task_of_parameters(encoder: nn.Module) -> dict[str, str]:
    """Return the task that each parameter in a `ByTask` belongs to, by the parameter's name."""
    containers = {path for path, module in encoder.named_modules() if isinstance(module, ByTask)}
    found = {}
    for name, _ in encoder.named_parameters():
        parts = name.split(".")
        for end in range(len(parts) - 1):
            if ".".join(parts[:end]) in containers:
                found[name] = parts[end]
    return found
