"""Which tasks' modules an encoder that holds those of several tasks computes with now."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Sources(NamedTuple):
    """The tasks whose modules serve a task, the served one last.

    Attributes:
        names: the tasks.
        combined: whether their modules are combined; otherwise the last one is read alone.
    """

    names: Sequence[str]
    combined: bool = True


class ActiveTasks:
    """The tasks whose modules are read now; copies of the encoder share this object."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.combined = True

    def __deepcopy__(self, memo: object) -> "ActiveTasks":
        """Return the same object."""
        return self

    @property
    def sources(self) -> Sources:
        """What is read now."""
        return Sources(tuple(self.names), self.combined)

    def show(self, sources: Sources) -> None:
        """Read the modules of ``sources`` from now on."""
        self.names, self.combined = list(sources.names), sources.combined

    @contextmanager
    def holding(self, sources: Sources) -> Iterator[None]:
        """Read the modules of ``sources`` inside the block."""
        before = self.sources
        self.show(sources)
        try:
            yield
        finally:
            self.show(before)
