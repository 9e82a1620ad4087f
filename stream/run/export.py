"""One task of a run as files that stand alone: docs/export.md.

``task.safetensors`` holds what learning changed for the task (adapters, LayerNorms, head),
``task.json`` what it is and which encoder it belongs to. Where learning changed the whole encoder,
or if asked, the encoder is written too, as a folder that transformers loads by itself; then
``task.safetensors`` holds the head alone. `stream.run.predict` serves such a folder.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save

from stream.config.data import GeneratedData
from stream.config.paths import tokenizer_location
from stream.data.task import Task
from stream.errors import require, understood, unknown
from stream.files.atomic import write_atomic, write_json
from stream.files.writable import EXPORT, check_writable, folder_errors
from stream.learners.base import Learner
from stream.run.exported import (
    ENCODER,
    FACTS,
    FORMAT,
    SCHEMA,
    TENSORS,
    WEIGHTS,
    encoder_digest,
    exported_name,
    is_shared,
)
from stream.run.load import serve_run
from stream.run.run import Run
from stream.run.selecting import Selecting


def export_task(run: Path, task: str, out: Path, *, with_encoder: bool = False) -> dict[str, Any]:
    """Write one learned task of a run into the new folder ``out``; return its facts.

    Args:
        run: the run folder.
        task: the task's name.
        out: the new folder.
        with_encoder: write the encoder too, whether learning changed all of it or not.

    Raises:
        UserError: no such run or task, a task that other tasks' modules serve too, an encoder that
            transformers alone cannot compute, or a folder in use or that cannot be written.
        FullDiskError: there is no room.
    """
    served = serve_run(run, "cpu")
    require(
        served.config.scenario != "shared_head",
        f"{run} has one head for all tasks (scenario=shared_head): none of them can be handed over "
        "alone",
    )
    learned = [known.name for known in served.tasks]
    if task not in learned:
        raise unknown("learned task", task, learned)
    served = _alone(served, task)
    learner = served.learner
    _require_alone(learner, task)
    require(not out.exists(), f"{out} exists; choose another --out")
    check_writable(out, EXPORT)
    own = _changed(learner, task)
    plain = _is_plain(learner, task)
    require(
        plain or not with_encoder,
        f"learner {learner.name} serves {task!r} with more than an encoder of transformers "
        "and a head; export without --with-encoder",
    )
    require(
        not with_encoder or served.config.backbone.storage != "nf4",
        f"{run} has its encoder in 4 bits (backbone.storage=nf4); export without --with-encoder",
    )
    whole = with_encoder or (plain and _is_all_changed(learner, own))
    head = {n: t for n, t in own.items() if not n.startswith("encoder.")}
    written = head if whole else own
    tensors = {exported_name(n, task): t.detach().cpu().contiguous() for n, t in written.items()}
    data = save(tensors)
    with understood(run):
        known = _facts(served, served.task(task))
    facts = {
        **known,
        "encoder": None if whole else encoder_digest(learner, task, written),
        "tensors": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "sha256": sha256(data).hexdigest(),
    }
    with folder_errors(out, EXPORT):
        out.mkdir(parents=True)
        if whole:
            _write_encoder(served, served.task(task), out / ENCODER)
            facts["encoder_sha256"] = sha256((out / ENCODER / WEIGHTS).read_bytes()).hexdigest()
        write_atomic(out / TENSORS, data)
        write_json(out / FACTS, facts)
    return facts


def _alone(served: Run, task: str) -> Run:
    """Return a run that serves a task as a plain run of what was chosen for it would."""
    learner = served.learner
    if not isinstance(learner, Selecting):
        return served
    own = {"learner": served.record.settings_of(task), "select": None}
    record = msgspec.structs.replace(served.record, config={**served.record.config, **own})
    return replace(served, learner=learner.server_of(task), record=record)


def _require_alone(learner: Learner, task: str) -> None:
    """Raise UserError if modules of other tasks serve the task too."""
    require(
        not learner.tags.reads_past_tasks,
        f"learner {learner.name} serves {task!r} with what earlier tasks left too; it cannot be "
        "handed over alone",
    )
    others = [name for name in learner.sources(task).names if name != task]
    require(
        not others,
        f"learner {learner.name} serves {task!r} with modules of {', '.join(others)}; it cannot "
        "be handed over alone",
    )


def _changed(learner: Learner, task: str) -> dict[str, torch.Tensor]:
    """Return what learning changed of all that serves a task: its own, and what tasks share."""
    own = learner.task_state(task)
    shared = {
        name: tensor
        for name, tensor in learner.served_state(task).items()
        if name not in own and is_shared(learner, name)
    }
    return {**own, **shared}


def _is_plain(learner: Learner, task: str) -> bool:
    """Return whether the encoder that came, with other weights, and a head serve the task."""
    if not learner.tags.uses_encoder or learner.overrides("predict"):
        return False
    encoder = learner.model.encoder
    names = {name for name, _ in encoder.named_parameters()}
    return names == encoder.pretrained and not learner.task_tensors.get(task)


def _is_all_changed(learner: Learner, changed: Mapping[str, torch.Tensor]) -> bool:
    """Return whether nothing that a prediction reads of the encoder is as it came."""
    return all(f"encoder.{name}" in changed for name in learner.read_parameters)


def _write_encoder(served: Run, task: Task, folder: Path) -> None:
    """Write the encoder that serves a task, and its tokenizer, as transformers saves them."""
    from transformers import AutoTokenizer

    body: Any = served.learner.model.encoder.body
    with served.learner.serving(task):
        body.save_pretrained(folder)
    backbone = served.config.backbone
    location = tokenizer_location(backbone)
    tokenizer: Any = AutoTokenizer.from_pretrained(location, revision=backbone.revision)
    tokenizer.save_pretrained(folder)


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
        "fields": spec.field_names,
        "segments": spec.segments,
        "labels": spec.labels,
        "score_range": spec.score_range,
        "learner": config.learner.name,
        "backbone": asdict(config.backbone),
        "score": {"metric": spec.metric, "split": record.split, "value": score},
        "trained_on": record.source,
        "source": GeneratedData().source,
        "versions": record.versions,
        "config": {**record.config, **own},
    }
