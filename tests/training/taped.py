"""A CUDA graph without a GPU: a tape of the operations of a step, made again on the same tensors.

With `graphs_as_tapes` the engine that captures steps runs on a CPU. A tape demands what a graph
does. Python is not run again, so what a step left in attributes at its last capture is what hooks
read. While a step is captured nothing is learned, and whatever asks a tensor for a value, or brings
one from elsewhere, is refused: tensors that are made without a device lie on ``meta`` then.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from stream.training import captured
from tests.training.captured import READS

TO_THE_CPU = frozenset(("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__float__"))
FROM_THE_CPU = ("lift_fresh", "pin_memory")
WIDTHS = (8, 16)
"""To which batches are padded: tiny ones would all have one shape."""


class Tape(TorchDispatchMode):
    """The operations inside the block, which change nothing until `replay`."""

    def __init__(self) -> None:
        super().__init__()
        self.replays = 0
        self._operations: list[tuple[Any, Any, Any, list[torch.Tensor]]] = []
        self._own: set[int] = set()
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def __enter__(self) -> "Tape":
        self._random = torch.get_rng_state()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.set_rng_state(self._random)
        for storage, before in self._before.values():
            storage.copy_(before)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name, writes, makes = kind_of(func)
        if name in READS or name in FROM_THE_CPU:
            raise _refused(name)
        if not (writes or makes):  # a view
            return func(*args, **kwargs)
        given = bare(args), bare(kwargs)
        for key in writes:
            self._keep(args[key] if isinstance(key, int) and key < len(args) else kwargs.get(key))
        results = func(*args, **kwargs)
        made = tensors_in(bare(results)) if makes else []
        if any(tensor.is_meta for tensor in made):
            raise _refused(f"{name} without a device")
        self._own.update(map(_place, made))
        self._operations.append((func, *given, made))
        return results

    def _keep(self, value: Any) -> None:
        """Note what tensors hold that were there before the tape, and are about to change."""
        for tensor in tensors_in(value):
            if _place(tensor) not in self._own and _place(tensor) not in self._before:
                storage = tensor.untyped_storage()
                self._before[_place(tensor)] = storage, storage.clone()

    def replay(self) -> None:
        """Make all operations again, in the tensors of before."""
        self.replays += 1
        with torch.no_grad():
            for func, args, kwargs, made in self._operations:
                again = func(*args, **kwargs)
                for mine, new in zip(made, tensors_in(again) if made else (), strict=True):
                    mine.copy_(new)


@cache
def kind_of(func: Any) -> tuple[str, tuple[int | str, ...], bool]:
    """Return an operation's name, which arguments it changes, and whether it makes tensors."""
    schema, writes = func._schema, list[int | str]()
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            writes.append(argument.name if argument.kwarg_only else place)
    makes = any(result.alias_info is None for result in schema.returns)
    return func.overloadpacket.__name__, tuple(writes), makes


def bare(value: Any) -> Any:
    """Return tensors without the graph that leads back from them."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, list | tuple):
        return [bare(each) for each in value]
    return {key: bare(each) for key, each in value.items()} if isinstance(value, dict) else value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors among what an operation takes or returns."""
    if isinstance(value, torch.Tensor):
        return [value]
    return (
        [t for each in value for t in tensors_in(each)] if isinstance(value, list | tuple) else []
    )


def _place(tensor: torch.Tensor) -> int:
    """Return what tensors have in common that share memory; tapes hold all that they note."""
    return tensor.untyped_storage()._cdata


def _refused(name: str) -> RuntimeError:
    """Return what a capture raises."""
    return RuntimeError(f"operation not permitted when stream is capturing: {name}")


class _NoReads(TorchFunctionMode):
    """Refuses what reads a tensor in Python."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if (name := getattr(func, "__name__", "")) in TO_THE_CPU:
            raise _refused(name)
        return func(*args, **kwargs or {})


class _Stream:
    def wait_stream(self, other: object) -> None:
        """Everything runs in order."""


@contextmanager
def graphs_as_tapes() -> Iterator[list[Tape]]:
    """Let the engine capture on the CPU inside the block, in float32 as it does in bf16.

    Yields:
        the tapes that were made.
    """
    tapes, capturing = list[Tape](), list[ExitStack]()
    masks = torch.zeros(())  # where those of dropout start, in the memory of the GPU

    class Graph:
        """Has the methods of ``torch.cuda.CUDAGraph`` that the engine calls."""

        def capture_begin(self, **options: object) -> None:
            masks.zero_()
            self._tape = Tape()
            tapes.append(self._tape)
            capturing.append(ExitStack())
            for mode in (torch.device("meta"), _NoReads(), self._tape):
                capturing[-1].enter_context(mode)

        def capture_end(self) -> None:
            capturing.pop().close()

        def replay(self) -> None:
            masks.clone()
            self._tape.replay()

    instead: dict[str, Callable[..., Any]] = {
        "CUDAGraph": Graph,
        "Stream": _Stream,
        "current_stream": _Stream,
        "current_device": lambda: 0,
        "graph_pool_handle": lambda: None,
        "stream": lambda stream: nullcontext(),
        "is_current_stream_capturing": lambda: bool(capturing),
        "synchronize": lambda: None,
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in instead.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(captured, "capture_stream", lambda device: torch.cuda.Stream())
        patch.setattr(captured, "WIDTHS", WIDTHS)
        patch.setattr(captured.Captured, "_pads", True)
        yield tapes
