"""A method as people see it before it is used: no torch, and nothing that JSON cannot hold."""

import inspect
from dataclasses import asdict, dataclass, fields
from typing import Any

from stream.config.setting import Range, Settings, rules, types
from stream.learners.tags import Tags


@dataclass(frozen=True)
class SettingDescription:
    """One setting of a method.

    Attributes:
        name: its name on the command line is ``learner.NAME``.
        type: its type as Python writes it, such as ``float | None``.
        default: its default.
        valid: its range or the valid names, in words; empty if every value of the type is valid.
        meaning: what it does, in a sentence.
    """

    name: str
    type: str
    default: Any
    valid: str
    meaning: str


@dataclass(frozen=True)
class LearnerDescription:
    """One method.

    Attributes:
        name: its name on the command line.
        module: where it is defined.
        summary: the first sentence of its docstring.
        tags: what kind of method it is, with its paper and what it stores.
        settings: its settings, in order.
    """

    name: str
    module: str
    summary: str
    tags: Tags
    settings: tuple[SettingDescription, ...]

    @property
    def perfect_memory(self) -> bool:
        """Whether learning a task changes no byte of what serves an earlier one."""
        return self.tags.parameter_isolation

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {**asdict(self), "perfect_memory": self.perfect_memory}


def describe(learner: type[Settings], name: str, tags: Tags) -> LearnerDescription:
    """Return the description of a method's class."""
    hints, said = types(learner), rules(learner)
    settings = tuple(
        SettingDescription(
            name=of_class.name,
            type=_written(hints[of_class.name]),
            default=of_class.default,
            valid=_in_words(said[of_class.name].valid),
            meaning="",
        )
        for of_class in fields(learner)
    )
    text = inspect.getdoc(learner) or ""
    return LearnerDescription(name, learner.__module__, text.split("\n\n")[0], tags, settings)


def _written(hint: Any) -> str:
    """Return a type as Python writes it."""
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _in_words(valid: Range | tuple[str, ...] | None) -> str:
    """Return what is valid, in words."""
    if valid is None:
        return ""
    return str(valid) if isinstance(valid, Range) else ", ".join(map(str, valid))
