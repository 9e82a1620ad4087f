"""An exported task: the names of its files and tensors, read again and served.

`stream.run.export` writes it; docs/export.md has its format.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from stream.data.task import Task
from stream.errors import UserError, first_line, require, understood
from stream.fingerprint import Fingerprinter
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.run.run import Run
from stream.run.settings import recorded_config
from stream.run.setup import build_run

FACTS, TENSORS, ENCODER = "task.json", "task.safetensors", "encoder"
WEIGHTS = "model.safetensors"  # in the folder of the encoder
FORMAT = "task-stream task"
SCHEMA = 1


@dataclass(frozen=True)
class Exported:
    """What an export holds: the facts of ``task.json``, and tensors by their exported names."""

    facts: dict[str, Any]
    tensors: dict[str, torch.Tensor]


def exported_name(name: str, task: str) -> str:
    """Return a tensor's name outside: its path in the encoder of transformers, or ``head.…``."""
    return name.removeprefix("encoder.body.").replace(f"heads.{task}.", "head.", 1)


def encoder_digest(learner: Learner, task: str, written: Collection[str]) -> str:
    """Return a digest of the encoder's weights that serve the task and stand elsewhere.

    Args:
        learner: what serves the task.
        task: the task's name.
        written: the names of the tensors in the export, which are not among them.
    """
    known = {*learner.task_state(task), *written}
    state = learner.served_state(task)
    return Fingerprinter().of(
        {n: t for n, t in state.items() if n.startswith("encoder.") and n not in known}
    )


def is_shared(learner: Learner, name: str) -> bool:
    """Return whether learning changes a tensor of the encoder for all tasks."""
    if not learner.tags.uses_encoder or not name.startswith("encoder."):
        return False
    return name.removeprefix("encoder.") in learner.ownership.shared


def read_export(folder: Path) -> Exported:
    """Read an export and check it.

    Raises:
        UserError: missing files, another format, or tensors that are not those of its facts.
    """
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        data = (folder / TENSORS).read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(f"no exported task at {folder}: {first_line(error)}") from error
    with understood(folder / FACTS):
        known = (facts["format"], facts["schema"]) == (FORMAT, SCHEMA)
        known = known and facts["learner"] in LEARNERS and facts["task"] in facts["config"]["task"]
    require(known, f"{folder / FACTS} is no exported task of schema {SCHEMA}")
    same = sha256(data).hexdigest() == facts.get("sha256")
    require(same, f"{folder / TENSORS} is not the file that {FACTS} was written for")
    try:
        return Exported(facts, load(data))
    except SafetensorError as error:
        raise UserError(f"{folder / TENSORS}: {first_line(error)}") from error


def serve_export(folder: Path, device: str = "auto", encoder: Path | None = None) -> Run:
    """Load an exported task and its encoder.

    Args:
        folder: what `export_task` wrote.
        device: where to serve it.
        encoder: the encoder's folder on this machine, where it is not found by itself.

    Raises:
        UserError: a broken export, or an encoder with other weights than the task was learned on.
    """
    exported = read_export(folder)
    facts = exported.facts
    config = recorded_config(facts["config"], facts["learner"], facts["source"])
    expected = str(facts.get("encoder"))
    whole = facts.get("encoder_sha256")
    require(
        whole is None or encoder is None,
        f"{folder} holds its encoder; --encoder is for exports without one",
    )
    backbone = config.backbone
    if encoder is not None:
        backbone = replace(backbone, origin="folder", location=str(encoder))
    if whole is not None:
        place = {"origin": "folder", "location": str(folder / ENCODER), "sha256": whole}
        backbone = replace(backbone, **place, tokenizer=None, revision=None, shape={})
    config = replace(config, device=device, backbone=backbone, scenario="known")
    task = Task(facts["task"], config.task[facts["task"]], {}, {})
    run = build_run(config, folder, tasks=[task])
    written = _adopt(run.learner, task, exported.tensors, whole=whole is not None)
    found = encoder_digest(run.learner, task.name, written)
    require(
        whole is not None or found == expected,  # the SHA-256 of its own encoder was checked
        f"the encoder {backbone.name!r} here is not the one that {task.name!r} was learned on: "
        f"its weights have digest {found[:12]}, expected {expected[:12]}",
    )
    return run


def _adopt(
    learner: Learner, task: Task, tensors: Mapping[str, torch.Tensor], *, whole: bool
) -> Collection[str]:
    """Give the learner a task's tensors under its own names for them; return these names.

    Args:
        learner: fresh, with the encoder.
        task: the task.
        tensors: by their exported names.
        whole: the encoder has the task's values already; the tensors are the head's.
    """
    names = [f"encoder.{name}" for name, _ in learner.model.encoder.named_parameters()]
    names += [f"heads.{task.name}.{part}" for part in ("weight", "bias")]
    if learner.tags.sparse_differences:
        names += [f"{name}.{part}" for name in names for part in ("indices", "values")]
    inside = {exported_name(name, task.name): name for name in names}
    named = {inside.get(n, n): tensor for n, tensor in tensors.items()}
    shared = {n: tensor for n, tensor in named.items() if is_shared(learner, n)}
    own = {n: tensor for n, tensor in named.items() if n not in shared}
    if whole and not learner.tags.sparse_differences:
        own |= {f"encoder.{n}": t for n, t in learner.task_parameters.first.items()}
    try:
        learner.load_task_state(task, own, serve_only=True)
        if shared:
            learner.load_shared_state(shared)
    except (KeyError, ValueError) as error:
        raise UserError(f"the export does not fit its learner: {first_line(error)}") from error
    return named
