"""Memory of a GPU that other programs, and what this one does next, can use again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


@cache
def capture_stream(device: int) -> torch.cuda.Stream:
    """Return the one stream of a device on which steps are captured.

    cuBLAS keeps a workspace for every stream that it has met, some 100 MB on an H200, for good.
    """
    return torch.cuda.Stream(device)


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Collect no garbage inside the block: a graph in it, destroyed, would end a capture."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def give_gpu_memory_back() -> None:
    """Give back what nothing in this process uses any more.

    Models and graphs that refer to each other are in memory until they are collected.
    """
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()
