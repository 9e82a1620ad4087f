"""Checkpoints: what a run needs to go on bit for bit, on disk, whole or not at all.

``checkpoint/objects/`` holds groups of tensors as safetensors files named by their SHA-256, so
what did not change is not written again. ``checkpoint/groups.jsonl`` names the groups that will not
change, a line each; it only grows. ``checkpoint/manifest-N.json`` names the other groups of
generation N, says how much of ``groups.jsonl`` and of the run's ``rows.jsonl`` belongs to it, and
holds the rest of the state; its own digest is its last line. So what is written for a task does not
grow with the tasks before it. The last two generations are kept. Nothing here is pickled: loading
runs no code.
"""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from stream.errors import UserError, first_line
from stream.files.atomic import write_atomic
from stream.files.line_log import Extent, LineLog, read_extent
from stream.files.run_folder import ROWS_NAME

LOG = logging.getLogger(__name__)
FOLDER = "checkpoint"
GROUPS_NAME = "groups.jsonl"
GENERATIONS_KEPT = 2
SCHEMA = 2
WITHOUT_LOGS = 1  # the schema whose manifests name every group and hold the whole record
DIGEST_LETTERS = 64
NOTHING = Extent(0, 0, hashlib.sha256().hexdigest())

Tensors = dict[str, torch.Tensor]


class BrokenCheckpointError(ValueError):
    """A checkpoint whose files are missing, torn or changed."""


@dataclass(frozen=True)
class Checkpoint:
    """One generation.

    Attributes:
        generation: its number.
        state: JSON values.
        groups: the digest of each group of tensors, by its name.
        document: the digest of what `CheckpointStore.write_document` wrote; empty without one.
        rows: how much of the run's ``rows.jsonl`` belongs to it; None in the first schema.
        final: how much of ``groups.jsonl`` belongs to it; its groups are among ``groups``.
    """

    generation: int
    state: dict[str, Any]
    groups: dict[str, str]
    document: str = ""
    rows: Extent | None = None
    final: Extent = NOTHING


class CheckpointStore:
    """The checkpoints of one run folder; it has one writer."""

    def __init__(self, folder: Path):
        self._run = folder
        self._folder = folder / FOLDER
        self._objects = self._folder / "objects"
        self._log = LineLog(self._folder / GROUPS_NAME)
        self._final: dict[str, str] = {}  # as the log has them
        self._final_digests: set[str] = set()
        self._known: set[str] | None = None  # digests of files that may go; None: not looked yet

    @property
    def final(self) -> Mapping[str, str]:
        """The digests of the groups that will not change, by name; every generation has them."""
        return self._final

    def go_on(self, checkpoint: Checkpoint) -> None:
        """Have the next generation follow this one, which was just read.

        Raises:
            BrokenCheckpointError: ``groups.jsonl`` was changed since.
        """
        lines = self._lines(self._folder / GROUPS_NAME, checkpoint.final)
        self._log.go_on(lines)
        self._final = _pairs(lines)
        self._final_digests = set(self._final.values())

    def write(
        self,
        groups: Mapping[str, Mapping[str, torch.Tensor]],
        state: Mapping[str, Any],
        *,
        final: Collection[str] = (),
        document: str = "",
        rows: Extent | None = None,
    ) -> None:
        """Write the next generation and drop the oldest.

        Args:
            groups: tensors by group and name, without those that are `final` already.
            state: JSON values.
            final: those of the groups that will not change.
            document: what `write_document` returned.
            rows: how much of the run's ``rows.jsonl`` belongs to it.

        Raises:
            OSError: the disk is full or cannot be written; the generations before are untouched.
        """
        self._make_folders()
        digests = {name: self._write_object(tensors) for name, tensors in groups.items()}
        self.finish({name: digests.pop(name) for name in final})
        generation = max(self.generations(), default=0) + 1
        text = msgspec.json.encode(
            {
                "schema": SCHEMA,
                "groups": digests,
                "final": self._log.extent,
                "document": document,
                "rows": rows,
                "state": state,
            }
        )
        digest = hashlib.sha256(text).hexdigest()
        write_atomic(self._manifest(generation), text, f"\n{digest}\n".encode())
        self._collect_garbage(generation, {*digests.values(), document})

    def finish(self, groups: Mapping[str, str]) -> None:
        """Note groups, the files of which are there, as those that will not change."""
        new = {name: digest for name, digest in groups.items() if name not in self._final}
        if new:
            self._make_folders()
            self._log.append(msgspec.json.encode([name, digest]) for name, digest in new.items())
            self._final |= new
            self._final_digests |= {*new.values()}

    def write_document(self, content: bytes) -> str:
        """Write JSON that many generations hold alike, once; return its digest."""
        self._make_folders()
        digest = hashlib.sha256(content).hexdigest()
        _write_file(self._document(digest), content)
        return digest

    def _make_folders(self) -> None:
        for folder in (self._folder, self._objects):  # a run folder that vanished stays away
            with suppress(FileExistsError):  # exist_ok=True looks again, and it may be gone by then
                folder.mkdir()

    def _write_object(self, tensors: Mapping[str, torch.Tensor]) -> str:
        """Write a group unless it is there, whole; return its digest."""
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        data = save(plain)
        digest = hashlib.sha256(data).hexdigest()
        _write_file(self._object(digest), data)
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

    def read(self, generation: int, checked: set[str] | None = None) -> Checkpoint:
        """Return one generation, every file of which was checked against its digest.

        Args:
            generation: its number.
            checked: digests of groups whose files were checked just now; others are added.

        Raises:
            BrokenCheckpointError: what is wrong with it.
        """
        checked = set() if checked is None else checked
        found = self._read_manifest(generation)
        final = _pairs(self._lines(self._folder / GROUPS_NAME, found.final))
        whole = replace(found, groups=_checked_names(final, GROUPS_NAME) | found.groups)
        for name, digest in whole.groups.items():
            if digest not in checked:
                self._checked(name, self._object(digest))
                checked.add(digest)
        if whole.document:
            self.document(whole)
        if whole.rows is not None:
            self.rows(whole)
        return whole

    def document(self, checkpoint: Checkpoint) -> bytes:
        """Return the JSON of a generation's document.

        Raises:
            BrokenCheckpointError: its file is missing or was changed.
        """
        return self._checked("document", self._document(checkpoint.document))

    def rows(self, checkpoint: Checkpoint) -> list[bytes]:
        """Return the lines of ``rows.jsonl`` that belong to a generation, without their ends.

        Raises:
            BrokenCheckpointError: the file is missing or was changed.
        """
        return self._lines(self._run / ROWS_NAME, checkpoint.rows or NOTHING)

    def _lines(self, path: Path, extent: Extent) -> list[bytes]:
        """Return the lines of the beginning of a file, checked."""
        try:
            found = read_extent(path, extent)
        except OSError as error:
            raise BrokenCheckpointError(f"{path.name}: {first_line(error)}") from error
        if found is None:
            raise BrokenCheckpointError(f"{path.name} is torn or was changed")
        return found

    def _read_manifest(self, generation: int) -> Checkpoint:
        """Return one generation as its manifest says it, without looking at other files."""
        path = self._manifest(generation)
        content = msgspec.json.decode(self._whole(path))
        schema = content["schema"]
        if schema not in (WITHOUT_LOGS, SCHEMA):
            raise BrokenCheckpointError(f"{path.name} has schema {schema}, not {SCHEMA}")
        found = Checkpoint(generation, content["state"], content["groups"])
        if schema == SCHEMA:
            final, rows = (e and Extent(*e) for e in (content["final"], content["rows"]))
            found = replace(found, document=content["document"], rows=rows, final=final)
        named = found.groups | ({"document": found.document} if found.document else {})
        _checked_names(named, path.name)
        return found

    def _whole(self, path: Path) -> bytes:
        """Return the text of a manifest, which was checked against its digest."""
        try:
            text, _, rest = path.read_bytes().partition(b"\n")
            digest = rest.decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenCheckpointError(f"{path.name}: {first_line(error)}") from error
        if hashlib.sha256(text).hexdigest() != digest:
            raise BrokenCheckpointError(f"{path.name} is torn or was changed")
        return text

    def load(self, checkpoint: Checkpoint, group: str) -> Tensors:
        """Return the tensors of one group, on the CPU.

        Raises:
            BrokenCheckpointError: its file is missing or was changed.
        """
        data = self._checked(group, self._object(checkpoint.groups[group]))
        try:
            return load(data)
        except SafetensorError as error:
            raise BrokenCheckpointError(f"{group}: {first_line(error)}") from error

    def _checked(self, name: str, path: Path) -> bytes:
        """Return the bytes of a file that is named by its digest, checked."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BrokenCheckpointError(f"{name}: {first_line(error)}") from error
        if hashlib.sha256(data).hexdigest() != path.stem:
            raise BrokenCheckpointError(f"{name}: {path.name} was changed")
        return data

    def _collect_garbage(self, newest: int, named: set[str]) -> None:
        """Remove all but the last whole generations, and files that none of them names.

        Args:
            newest: the generation that was just written.
            named: the digests of files that its manifest names.
        """
        kept = {newest: named}
        for generation in reversed(self.generations()):
            try:
                if len(kept) < GENERATIONS_KEPT and generation not in kept:
                    found = self._read_manifest(generation)
                    kept[generation] = {*found.groups.values(), found.document}
            except BrokenCheckpointError:
                continue  # torn, so that it does not count as one to fall back to
        for generation in set(self.generations()) - kept.keys():
            self._manifest(generation).unlink(missing_ok=True)
        used = set().union(*kept.values())
        if self._known is None:  # what earlier processes left behind
            self._known = {path.stem for path in self._objects.iterdir()}
        for digest in self._known - used - self._final_digests:
            self._object(digest).unlink(missing_ok=True)
            self._document(digest).unlink(missing_ok=True)
        self._known = used

    def generations(self) -> list[int]:
        """Return the generations that have a manifest, oldest first."""
        names = (path.stem.partition("-")[2] for path in self._folder.glob("manifest-*.json"))
        return sorted(int(name) for name in names if name.isdigit())

    def _manifest(self, generation: int) -> Path:
        return self._folder / f"manifest-{generation}.json"

    def _object(self, digest: str) -> Path:
        return self._objects / f"{digest}.safetensors"

    def _document(self, digest: str) -> Path:
        return self._objects / f"{digest}.json"


def _write_file(path: Path, data: bytes) -> None:
    """Write a file that is named by its digest, unless it is there, whole."""
    if not (path.exists() and path.read_bytes() == data):
        write_atomic(path, data)


def _pairs(lines: Sequence[bytes]) -> dict[str, str]:
    """Return the groups that lines of ``groups.jsonl`` name."""
    return dict(msgspec.json.decode(line, type=tuple[str, str]) for line in lines)


def _checked_names(groups: dict[str, str], where: str) -> dict[str, str]:
    """Return groups, each of whose digests may name a file.

    Raises:
        BrokenCheckpointError: one of them is no digest.
    """
    if not all(len(d) == DIGEST_LETTERS and d.isalnum() for d in groups.values()):
        raise BrokenCheckpointError(f"{where} names files that are no digests")
    return groups
