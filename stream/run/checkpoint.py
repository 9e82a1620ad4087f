"""Checkpoints: what a run needs to go on bit for bit, on disk, whole or not at all.

``checkpoint/objects/`` holds groups of tensors as safetensors files named by their SHA-256, so
what did not change is not written again. ``checkpoint/manifest-N.json`` names the files of
generation N and holds the rest of the state; its own digest is its last line. The last two
generations are kept. Nothing here is pickled: loading runs no code.
"""

import hashlib
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from stream.atomic_io import write_atomic
from stream.errors import UserError, first_line

LOG = logging.getLogger(__name__)
FOLDER = "checkpoint"
GENERATIONS_KEPT = 2
SCHEMA = 1
DIGEST_LETTERS = 64

Tensors = dict[str, torch.Tensor]


class BrokenCheckpointError(ValueError):
    """A checkpoint whose files are missing, torn or changed."""


@dataclass(frozen=True)
class Checkpoint:
    """One generation: JSON state, and the digest of each group of tensors by its name."""

    generation: int
    state: dict[str, Any]
    groups: dict[str, str]


class CheckpointStore:
    """The checkpoints of one run folder; it has one writer."""

    def __init__(self, folder: Path):
        self._folder = folder / FOLDER
        self._objects = self._folder / "objects"
        self._written: tuple[str, dict[str, str]] = "", {}  # the last manifest: digest, groups

    def write(
        self,
        groups: Mapping[str, Mapping[str, torch.Tensor]],
        state: Mapping[str, Any],
        *,
        unchanged: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Write the next generation and drop the oldest.

        Args:
            groups: tensors by group and name.
            state: JSON values; `msgspec.Raw` is JSON already, on one line.
            unchanged: groups that stand on disk already, by their digests.

        Returns:
            The digests of all groups.

        Raises:
            OSError: the disk is full or cannot be written; the generations before are untouched.
        """
        for folder in (self._folder, self._objects):  # a run folder that vanished stays away
            with suppress(FileExistsError):  # exist_ok=True looks again, and it may be gone by then
                folder.mkdir()
        digests = dict(unchanged or {})
        for name, digest in digests.items():
            if not self._object(digest).exists():
                raise FileNotFoundError(f"{self._object(digest)} of {name} has vanished")
        for name, tensors in groups.items():
            digests[name] = self._write_object(tensors)
        generation = max(self.generations(), default=0) + 1
        content = {"schema": SCHEMA, "groups": digests, "state": state}
        text = msgspec.json.encode(content)
        digest = hashlib.sha256(text).hexdigest()
        write_atomic(self._manifest(generation), text, f"\n{digest}\n".encode())
        self._collect_garbage(generation, digests)
        self._written = digest, digests
        return digests

    def _write_object(self, tensors: Mapping[str, torch.Tensor]) -> str:
        """Write a group unless it is there, whole; return its digest."""
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        data = save(plain)
        digest = hashlib.sha256(data).hexdigest()
        path = self._object(digest)
        if not (path.exists() and path.read_bytes() == data):
            write_atomic(path, data)
        return digest

    def latest(self) -> Checkpoint | None:
        """Return the newest generation that is whole; None where there is none at all.

        A newer one that is not whole is named in a warning.

        Raises:
            UserError: there are checkpoints, and none is whole.
        """
        problems = []
        for generation in reversed(self.generations()):
            try:
                found = self.read(generation)
            except BrokenCheckpointError as error:
                problems.append(f"checkpoint {generation} cannot be used: {error}")
                continue
            for problem in problems:
                LOG.warning("%s; going on from checkpoint %d", problem, generation)
            return found
        if problems:
            raise UserError("; ".join(problems))
        return None

    def read(self, generation: int) -> Checkpoint:
        """Return one generation, every file of which was checked against its digest.

        Raises:
            BrokenCheckpointError: what is wrong with it.
        """
        found = self._read_manifest(generation)
        for name, digest in found.groups.items():
            self._checked(name, digest)
        return found

    def _read_manifest(self, generation: int) -> Checkpoint:
        """Return one generation without looking at its tensors."""
        path = self._manifest(generation)
        content = msgspec.json.decode(self._whole(path)[0])
        if content["schema"] != SCHEMA:
            raise BrokenCheckpointError(f"{path.name} has schema {content['schema']}, not {SCHEMA}")
        digests = content["groups"].values()
        if not all(len(d) == DIGEST_LETTERS and d.isalnum() for d in digests):  # they name files
            raise BrokenCheckpointError(f"{path.name} names files that are no digests")
        return Checkpoint(generation, content["state"], content["groups"])

    def _whole(self, path: Path) -> tuple[bytes, str]:
        """Return the text of a manifest, and its digest, which it was checked against."""
        try:
            text, _, rest = path.read_bytes().partition(b"\n")
            digest = rest.decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenCheckpointError(f"{path.name}: {first_line(error)}") from error
        if hashlib.sha256(text).hexdigest() != digest:
            raise BrokenCheckpointError(f"{path.name} is torn or was changed")
        return text, digest

    def _groups(self, generation: int) -> dict[str, str]:
        """Return the groups that a manifest names, without reading all of the last one again."""
        digest, groups = self._written
        if self._whole(self._manifest(generation))[1] == digest:
            return groups
        return self._read_manifest(generation).groups

    def load(self, checkpoint: Checkpoint, group: str) -> Tensors:
        """Return the tensors of one group, on the CPU.

        Raises:
            BrokenCheckpointError: its file is missing or was changed.
        """
        data = self._checked(group, checkpoint.groups[group])
        try:
            return load(data)
        except SafetensorError as error:
            raise BrokenCheckpointError(f"{group}: {first_line(error)}") from error

    def _checked(self, name: str, digest: str) -> bytes:
        """Return the bytes of a group's file, checked."""
        try:
            data = self._object(digest).read_bytes()
        except OSError as error:
            raise BrokenCheckpointError(f"{name}: {first_line(error)}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise BrokenCheckpointError(f"{name}: {self._object(digest).name} was changed")
        return data

    def _collect_garbage(self, newest: int, groups: dict[str, str]) -> None:
        """Remove all but the last whole generations, and files that none of them names."""
        kept = {newest: groups}
        for generation in reversed(self.generations()):
            try:
                if len(kept) < GENERATIONS_KEPT and generation not in kept:
                    kept[generation] = self._groups(generation)
            except BrokenCheckpointError:
                continue  # torn, so that it does not count as one to fall back to
        for generation in set(self.generations()) - kept.keys():
            self._manifest(generation).unlink(missing_ok=True)
        used = {digest for named in kept.values() for digest in named.values()}
        for path in self._objects.iterdir():
            if path.stem not in used:
                path.unlink(missing_ok=True)

    def generations(self) -> list[int]:
        """Return the generations that have a manifest, oldest first."""
        names = (path.stem.partition("-")[2] for path in self._folder.glob("manifest-*.json"))
        return sorted(int(name) for name in names if name.isdigit())

    def _manifest(self, generation: int) -> Path:
        return self._folder / f"manifest-{generation}.json"

    def _object(self, digest: str) -> Path:
        return self._objects / f"{digest}.safetensors"
