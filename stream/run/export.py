"""One task of a run as two files that stand alone.

``task.safetensors`` holds what the task owns (adapters, LayerNorms, head), ``task.json`` what it
is and which encoder it belongs to: docs/export.md. `stream.run.predict` serves such a folder.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from stream.atomic_io import write_atomic, write_json
from stream.config.data import GeneratedData
from stream.data.task import Task
from stream.errors import UserError, first_line, require, understood, unknown
from stream.fingerprint import Fingerprinter
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.run.load import serve_run
from stream.run.run import Run
from stream.run.settings import recorded_config
from stream.run.setup import build_run

FACTS, TENSORS = "task.json", "task.safetensors"
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


def export_task(run: Path, task: str, out: Path) -> dict[str, Any]:
    """Write one learned task of a run into the new folder ``out``; return its facts.

    Raises:
        UserError: no such run or task, a learner whose tasks own too little, or a folder in use.
        OSError: the folder cannot be written.
    """
    served = serve_run(run, "cpu")
    learned = [known.name for known in served.tasks]
    if task not in learned:
        raise unknown("learned task", task, learned)
    learner = served.learner
    require(
        learner.tags.parameter_isolation,
        f"learner {learner.name} serves {task!r} with weights that later tasks change too; only "
        "learners whose tasks own what they change can hand one over",
    )
    require(
        not learner.tags.reads_past_tasks,
        f"learner {learner.name} serves {task!r} with what earlier tasks left too; it cannot be "
        "handed over alone",
    )
    require(not out.exists(), f"{out} exists; choose another --out")
    owned = learner.task_state(task)
    tensors = {exported_name(n, task): t.detach().cpu().contiguous() for n, t in owned.items()}
    data = save(tensors)
    with understood(run):
        known = _facts(served, served.task(task))
    facts = {
        **known,
        "tensors": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "sha256": sha256(data).hexdigest(),
    }
    out.mkdir(parents=True)
    write_atomic(out / TENSORS, data)
    write_json(out / FACTS, facts)
    return facts


def _facts(served: Run, task: Task) -> dict[str, Any]:
    """Return what there is to know about a task, without paths and settings of this machine."""
    record, config, spec = served.record, served.config, task.spec
    score = record.score_matrix.last(task.name).score
    own = {
        "task": {task.name: asdict(spec)},
        "data": asdict(GeneratedData()),  # of no use: texts come from whoever serves it
        "tracking": {"name": "none"},
        "cache": None,
        "resume": None,
        "sweep": None,
    }
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "task": task.name,
        "title": spec.title,
        "kind": spec.kind,
        "labels": spec.labels,
        "score_range": spec.score_range,
        "learner": config.learner.name,
        "backbone": asdict(config.backbone),
        "encoder": _encoder_digest(served.learner, task.name),
        "score": {"metric": spec.metric, "split": record.split, "value": score},
        "trained_on": record.source,
        "source": GeneratedData().source,
        "versions": record.versions,
        "config": {**record.config, **own},
    }


def _encoder_digest(learner: Learner, task: str) -> str:
    """Return a digest of the encoder's weights that serve the task and are not its own."""
    owned = learner.task_state(task)
    state = learner.served_state(task)
    shared = {n: t for n, t in state.items() if n.startswith("encoder.") and n not in owned}
    return Fingerprinter().of(shared)


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
    backbone = config.backbone
    if encoder is not None:
        backbone = replace(backbone, origin="folder", location=str(encoder))
    config = replace(config, device=device, backbone=backbone)
    task = Task(facts["task"], config.task[facts["task"]], {}, {})
    run = build_run(config, folder, tasks=[task])
    _adopt(run.learner, task, exported.tensors)
    found = _encoder_digest(run.learner, task.name)
    require(
        found == expected,
        f"the encoder {backbone.name!r} here is not the one that {task.name!r} was learned on: "
        f"its weights have digest {found[:12]}, expected {expected[:12]}",
    )
    return run


def _adopt(learner: Learner, task: Task, tensors: Mapping[str, torch.Tensor]) -> None:
    """Give the learner a task's tensors under its own names for them."""
    names = [f"encoder.{name}" for name, _ in learner.model.encoder.named_parameters()]
    names += [f"heads.{task.name}.{part}" for part in ("weight", "bias")]
    inside = {exported_name(name, task.name): name for name in names}
    try:
        named = {inside.get(n, n): tensor for n, tensor in tensors.items()}
        learner.load_task_state(task, named, serve_only=True)
    except (KeyError, ValueError) as error:
        raise UserError(f"the export does not fit its learner: {first_line(error)}") from error
