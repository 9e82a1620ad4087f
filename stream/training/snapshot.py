"""Where learning one task stands after a step: all that going on bit for bit needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]
LEARNER = "learner."


@dataclass
class FitSnapshot:
    """The position in a task's training, what was seen so far, and every tensor involved.

    Attributes:
        epoch: the pass that is being made, from 0.
        batch: batches of it that were learned.
        examples: examples learned so far.
        seconds: time spent so far.
        flops: operations counted so far.
        losses: of every step.
        tensors: trained parameters, the optimizer's moments and the random streams, by name.
    """

    epoch: int = 0
    batch: int = 0
    examples: int = 0
    seconds: float = 0.0
    flops: int = 0
    losses: list[float] = field(default_factory=list)
    tensors: Tensors = field(default_factory=dict)

    def numbers(self) -> dict[str, Any]:
        """Return everything but the tensors as JSON values."""
        return {key: value for key, value in vars(self).items() if key != "tensors"}


def capture(
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    learner: Mapping[str, torch.Tensor],
    drawn: Sequence[Tensors],
) -> Tensors:
    """Copy what a step may have changed.

    Args:
        parameters: what is trained, by name.
        optimizer: whose moments they have.
        learner: the learner's own state, by name.
        drawn: the `randomness` of each rank.
    """
    tensors = {f"{LEARNER}{name}": tensor for name, tensor in learner.items()}
    for name, parameter in parameters.items():
        tensors[f"parameter.{name}"] = parameter
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{key}.{name}"] = value
    for rank, states in enumerate(drawn):
        tensors |= {f"{_of_rank(rank)}{name}": state for name, state in states.items()}
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def randomness(device: torch.device) -> Tensors:
    """Return where torch's global generators stand, by name."""
    states = {"random.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(device)
    return states


def _of_rank(rank: int) -> str:
    """Return what begins the names of a rank's generators; nothing for the first."""
    return f"rank.{rank}." if rank else ""


def load_tensors(
    tensors: Mapping[str, torch.Tensor],
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Put captured parameters and moments back.

    Raises:
        KeyError: tensors of other parameters.
    """
    with torch.no_grad():
        for name, parameter in parameters.items():
            _put(name, tensors[f"parameter.{name}"], parameter)
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors.get(f"optimizer.{key}.{name}")
                if value is None:  # it had no gradient so far
                    continue
                state = optimizer.state[parameter]
                if key not in state:  # AdamW keeps its count of steps on the CPU
                    state[key] = value.clone() if key == "step" else torch.zeros_like(parameter)
                _put(name, value, state[key])


def _put(name: str, stored: torch.Tensor, into: torch.Tensor) -> None:
    """Copy in place; a head has room for more outputs with one engine than with another."""
    if name.startswith("heads.") and into.ndim:
        rows = min(len(stored), len(into))
        stored, into = stored[:rows], into[:rows]
    into.copy_(stored)


def learner_state(tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """Return the learner's own state (`Learner.fit_state`) among captured tensors."""
    return {
        name.removeprefix(LEARNER): tensor
        for name, tensor in tensors.items()
        if name.startswith(LEARNER)
    }


def load_randomness(
    tensors: Mapping[str, torch.Tensor], device: torch.device, rank: int = 0
) -> None:
    """Set torch's global generators to where they were captured.

    Those of a rank that there was not stay where they are.
    """
    of_rank = _of_rank(rank)
    if rank and f"{of_rank}random.cpu" not in tensors:
        return
    torch.set_rng_state(tensors[f"{of_rank}random.cpu"])
    if device.type == "cuda" and f"{of_rank}random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors[f"{of_rank}random.cuda"], device)
