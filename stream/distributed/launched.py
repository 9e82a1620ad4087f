"""What torchrun tells the processes that it starts, without torch."""

import os
from dataclasses import dataclass

NEEDED = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Place:
    """The place of this process among those that torchrun started.

    Attributes:
        rank: among all, from 0.
        local: among those on this machine, from 0; it is the number of its GPU.
        size: how many there are on all machines.
    """

    rank: int = 0
    local: int = 0
    size: int = 1

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1


def launched() -> Place:
    """Return the place that torchrun gave this process; alone where it did not start it."""
    if any(name not in os.environ for name in NEEDED):
        return Place()
    return Place(*(int(os.environ[name]) for name in NEEDED))
