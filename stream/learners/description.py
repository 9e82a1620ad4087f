"""A method as people see it before it is used: no torch, and nothing that JSON cannot hold."""

import inspect
import sys
from dataclasses import asdict, dataclass
from typing import Any

from stream.config.description import SettingDescription, described_settings, plain
from stream.config.setting import Settings
from stream.learners.tags import Tags

__all__ = ["LearnerDescription", "SettingDescription", "describe"]


@dataclass(frozen=True)
class LearnerDescription:
    """One method.

    Attributes:
        name: its name on the command line.
        module: where it is defined.
        file: the file of the module.
        summary: the first sentence of its docstring.
        background: what its module says: paper, equations, where it deviates from them.
        tags: what kind of method it is, with its paper and what it stores.
        settings: its settings, in order.
    """

    name: str
    module: str
    file: str
    summary: str
    background: str
    tags: Tags
    settings: tuple[SettingDescription, ...]

    @property
    def perfect_memory(self) -> bool | None:
        """Whether learning a task leaves the logits of earlier ones as they are, bit for bit.

        None where there is nothing to forget, because all tasks are learned at once.
        """
        return None if self.tags.is_multitask else self.tags.perfect_memory

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {**asdict(self), "perfect_memory": self.perfect_memory}


def describe(learner: type[Settings], name: str, tags: Tags) -> LearnerDescription:
    """Return the description of a method's class."""
    module = sys.modules.get(learner.__module__)
    text = inspect.cleandoc(vars(learner).get("__doc__") or "")
    return LearnerDescription(
        name=name,
        module=learner.__module__,
        file=getattr(module, "__file__", None) or "",
        summary=plain(" ".join(text.split("\n\n")[0].split())),
        background=plain(inspect.cleandoc(getattr(module, "__doc__", None) or "")),
        tags=tags,
        settings=described_settings(learner),
    )


def described_learners() -> dict[str, LearnerDescription]:
    """Return the description of every method, by name."""
    from stream.learners import LEARNERS

    return {name: LEARNERS.description(name) for name in LEARNERS}


def broken_learners() -> dict[str, str]:
    """Return the names that are taken by what is no method, and why it is none."""
    from stream.learners import LEARNERS

    return dict(LEARNERS.broken)
