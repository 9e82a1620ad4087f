"""Randomness by name: every random stream is seeded from (run seed, purpose, names).

Never from a position or from how many draws came before. So a task's data, weights and batch
order are the same wherever it stands in the stream.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed that is a pure function of the run seed and the names."""
    text = json.dumps([seed, *names], ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return numpy's generator for one named purpose."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """Return torch's CPU generator for one named purpose."""
    return torch.Generator().manual_seed(derive_seed(seed, *names))


@contextmanager
def kept_randomness() -> Iterator[None]:
    """Restore torch's global generators after the block, those of the GPUs in use as well."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=[gpu for gpu in gpus if torch.cuda.memory_reserved(gpu)]):
        yield


@contextmanager
def torch_randomness(seed: int, *names: str | int) -> Iterator[None]:
    """Seed torch's global generators (dropout reads them) inside the block, then restore them."""
    with kept_randomness():
        torch.manual_seed(derive_seed(seed, *names))
        yield
