"""Streams of a GPU without one: whether what they do could happen in another order.

Operations of a stream happen one after another, those of two streams in any order, but where one
waited for the other (`wait_stream`) or the CPU for all. Every operation is given a time on its
stream, and each stream knows up to which time of the others it is later (vector clocks: Lamport
1978, Fidge 1988). Two operations on one tensor of which one writes, and of which none is later than
the other, are a race.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.training.taped import bare, kind_of, tensors_in


@dataclass(eq=False)
class Stream:
    """A stream; ``knows`` is the time of each stream that its next operation is later than."""

    knows: dict[int, int] = field(default_factory=dict)

    def wait_stream(self, other: "Stream") -> None:
        """Be later than all that ``other`` was given so far."""
        for stream, time in other.knows.items():
            self.knows[stream] = max(time, self.knows.get(stream, 0))


@dataclass
class _Uses:
    """Which operations used a tensor's memory: the last that wrote, and readers since then.

    The memory is held, so that no other tensor gets it.
    """

    memory: torch.UntypedStorage
    written: dict[int, int] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)


class Races(TorchDispatchMode):
    """Finds races among the operations inside the block.

    Attributes:
        found: the operations that might as well have happened before one that they follow.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.current = Stream()
        self._all = [self.current]
        self._uses: dict[int, _Uses] = {}

    def stream(self) -> Stream:
        """Return a new stream."""
        self._all.append(Stream())
        return self._all[-1]

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        """Give operations inside the block to a stream."""
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def synchronize(self) -> None:
        """Have every stream be later than all that any was given."""
        for stream in self._all:
            for other in self._all:
                stream.wait_stream(other)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        name, writes, makes = kind_of(func)
        if torch.cuda.is_current_stream_capturing() or not (writes or makes):
            return results
        changed = [args[k] if isinstance(k, int) else kwargs.get(k) for k in writes]
        mine = id(self.current)
        time = self.current.knows[mine] = self.current.knows.get(mine, 0) + 1
        given = tensors_in(bare([list(args), list(kwargs.values())]))
        written = tensors_in(bare(changed)) + (tensors_in(bare(results)) if makes else [])
        for tensor in given:
            self._note(name, tensor).read[mine] = time
        for tensor in written:
            uses = self._note(name, tensor, writes=True)
            uses.written, uses.read = {mine: time}, {}
        return results

    def _note(self, name: str, tensor: torch.Tensor, *, writes: bool = False) -> _Uses:
        """Return the uses of a tensor; those that this operation does not follow are races."""
        memory = tensor.untyped_storage()
        uses = self._uses.setdefault(memory._cdata, _Uses(memory))
        earlier = [*uses.written.items(), *(uses.read.items() if writes else ())]
        if any(self.current.knows.get(stream, 0) < time for stream, time in earlier):
            self.found.append(name)
        return uses


@contextmanager
def races() -> Iterator[Races]:
    """Find races of what runs inside the block and inside `graphs_as_tapes`."""
    with pytest.MonkeyPatch.context() as patch, Races() as found:
        patch.setattr(torch.cuda, "Stream", found.stream)
        patch.setattr(torch.cuda, "current_stream", lambda: found.current)
        patch.setattr(torch.cuda, "stream", found.on)
        patch.setattr(torch.cuda, "synchronize", found.synchronize)
        yield found
