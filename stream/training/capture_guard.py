"""Whether a step whose loss a method changed may be replayed: it must read nothing that changes.

A captured step repeats kernels with the tensors that it read when it was captured; Python is not
run again. So what a method keeps in its own attributes has to be the same at every replay, and the
loss must change none of them.
"""

from typing import Any

import torch

from stream.learners.base import Learner

CONSTANT = {  # what the base class sets once in `attach`, or changes between tasks alone
    "model",
    "seed",
    "pad_id",
    "learned",
    "active",
    "buffer",
    "task_parameters",
    "read_parameters",
    "ownership",
    "_fresh",
    "_stream",
}
MOST_STATES = 8
LOSS_TOLERANCE = 1e-2  # of the loss; rounding in bf16 is a tenth of it, another computation is not


State = tuple[tuple[str, Any], ...]


class _Same:
    """An object that equals itself alone; it is held, so that no other one gets its address."""

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class CaptureGuard:
    """What the attributes of one learner are, as parts of the key of a captured step."""

    def __init__(self, learner: Learner):
        self._learner = learner
        self._seen: dict[Any, list[dict[str, Any]]] = {}

    def state(self) -> State:
        """Return the method's attributes: numbers and texts by value, the rest by identity."""
        return tuple((name, _described(value)) for name, value in self.attributes().items())

    def attributes(self) -> dict[str, Any]:
        """Return the method's attributes as they are."""
        return {name: own for name, own in vars(self._learner).items() if name not in CONSTANT}

    def refusal(self, shape: Any, state: State, before: dict[str, Any]) -> str:
        """Return why a step that was just captured must not be replayed; empty where it may.

        What the loss wrote meanwhile is taken back.

        Args:
            shape: what else a captured step is known by.
            state: what `state` returned before.
            before: what `attributes` returned before.
        """
        known, name = dict(state), self._learner.name
        written = [key for key, value in self.state() if key not in known or known[key] != value]
        for key in written:
            vars(self._learner).pop(key)
        vars(self._learner).update(before)
        if written:
            return f"the loss of learner {name} changes its attribute {written[0]!r}"
        changing = self._changing(shape, known)
        return f"learner {name} changes {changing} from step to step" if changing else ""

    def _changing(self, shape: Any, known: dict[str, Any]) -> str:
        """Return the attributes that change from step to step; empty where none does."""
        seen = self._seen.setdefault(shape, [])
        seen.append(known)
        if len(seen) <= MOST_STATES:
            return ""
        return ", ".join(name for name, value in known.items() if seen[-2].get(name) != value)


def _described(value: Any) -> Any:
    """Return something hashable that equals only what a captured step would read the same."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(_described, value))
    if isinstance(value, dict):
        return tuple((key, _described(inner)) for key, inner in value.items())
    return _Same(value)


def agree(replayed: torch.Tensor, executed: torch.Tensor) -> bool:
    """Return whether a replayed step's loss is that of the same step executed."""
    return torch.allclose(replayed, executed, rtol=LOSS_TOLERANCE, atol=LOSS_TOLERANCE)
