"""Randomness by name: every random generator is seeded from (run seed, purpose, names).

No seed depends on a position or on earlier draws. So a task's data, first weights and batch order
are the same at any position in the stream.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed: a pure function of the run's seed and the names."""
    text = json.dumps([seed, *names], ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return numpy's generator for the purpose that the names describe."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))


def torch_generator(seed: int, *names: str | int) -> "torch.Generator":
    """Return torch's CPU generator for the purpose that the names describe."""
    import torch  # only here: generated data need none

    return torch.Generator().manual_seed(derive_seed(seed, *names))


@contextmanager
def preserved_rng_state() -> Iterator[None]:
    """Restore the state of torch's global generators (CPU and GPUs in use) after the block."""
    import torch

    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=[gpu for gpu in gpus if torch.cuda.memory_reserved(gpu)]):
        yield


def seed_torch(seed: int) -> None:
    """Seed torch's global generators.

    Without a GPU that is the CPU's alone: `torch.manual_seed` would note a seed, with a stack
    trace, for each kind of device that may come to be used, which takes longer than a small step.
    """
    import torch

    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def torch_randomness(seed: int, *names: str | int) -> Iterator[None]:
    """Seed torch's global generators (as dropout uses them) for the block, then restore them."""
    with preserved_rng_state():
        seed_torch(derive_seed(seed, *names))
        yield
