"""Fingerprints of everything that serves a task: equal fingerprints prove an equal score."""

import hashlib
import json
from collections.abc import Mapping

import torch


def tensor_digest(tensor: torch.Tensor) -> str:
    """Return the SHA-256 of a tensor's type, shape and bytes."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    state = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
    state.update(flat.view(torch.uint8).numpy().data)
    return state.hexdigest()


def fingerprint(digests: Mapping[str, str], *evidence: str) -> str:
    """Return the SHA-256 of the digests of named tensors and of what they are evaluated on."""
    text = json.dumps([digests, evidence], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Fingerprinter:
    """Fingerprints of several tasks at one moment; a tensor that they share is hashed once.

    What was hashed is held, so that no other tensor can take its place in memory. A tensor that is
    changed in place is hashed again; with a new `Fingerprinter` so is one whose ``data`` was
    replaced or changed behind autograd's back, which no version counts.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[torch.Tensor, str]] = {}

    def of(self, state: Mapping[str, torch.Tensor], *evidence: str) -> str:
        """Return the `fingerprint` of named tensors and of what they are evaluated on.

        Args:
            state: the tensors that serve a task, by name.
            evidence: the hash of the evaluation data, and the metric.
        """
        return fingerprint(self.digests(state), *evidence)

    def digests(self, state: Mapping[str, torch.Tensor]) -> dict[str, str]:
        """Return the SHA-256 of each tensor by its name."""
        return {name: self._digest(tensor) for name, tensor in state.items()}

    def _digest(self, tensor: torch.Tensor) -> str:
        """Return the digest of a tensor; the same numbers at the same place are hashed once."""
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        key = (*place, None if tensor.is_inference() else tensor._version)
        if key not in self._known:
            self._known[key] = tensor.detach(), tensor_digest(tensor)
        return self._known[key][1]
