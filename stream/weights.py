"""The weights of learned tasks on disk: one safetensors file a task, of what the task owns."""

import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from stream.errors import UserError, first_line
from stream.learners.base import Learner
from stream.tasks.task import Task

FOLDER = "weights"


def task_file(folder: Path, task: str) -> Path:
    """Return where a run keeps the weights of a task."""
    return folder / FOLDER / f"{task}.safetensors"


def save_task(learner: Learner, task: Task, folder: Path) -> None:
    """Write what ``task`` owns of the encoder and its head; whole or not at all."""
    path = task_file(folder, task.name)
    path.parent.mkdir(exist_ok=True)
    owned = learner.owned_state(task.name)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    save_file({name: t.detach().cpu().contiguous() for name, t in owned.items()}, temporary)
    temporary.replace(path)


def load_task(learner: Learner, task: Task, folder: Path, device: torch.device) -> None:
    """Give a learner that has just begun the weights of a learned task.

    Raises:
        UserError: the file is not there, broken, or of another learner or size.
    """
    path = task_file(folder, task.name)
    try:
        stored = load_file(path, device=str(device))
    except (OSError, SafetensorError) as error:
        hint = "" if path.exists() else "; run with save_weights=true to keep them"
        raise UserError(f"no weights of {task.name!r}: {first_line(error)}{hint}") from error
    try:
        learner.restore(task, stored)
    except (KeyError, ValueError) as error:
        raise UserError(f"{path} does not fit this learner: {first_line(error)}") from error
