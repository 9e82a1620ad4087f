"""What torch was asked for while it computed."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Noting(TorchDispatchMode):
    """Notes whether torch computes deterministically, by operation."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, bool] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found[func.__name__] = torch.are_deterministic_algorithms_enabled()
        return func(*args, **(kwargs or {}))
