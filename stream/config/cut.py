"""Settings: how one set is cut into tasks by class, and what a task that is a part remembers."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stream.config.setting import SEED, Settings, at_least, setting
from stream.errors import require


@dataclass
class CutSpec(Settings):
    """How a set is cut into tasks by class; without values it stays whole.

    Attributes:
        classes: how many classes each part has; the last one may have fewer.
        parts: instead, the classes of each part by its name, in the order of its outputs: labels,
            or their positions from 0. Rows of a class that no part has belong to no task.
        seed: ``classes`` takes the labels in a random order that this decides; null takes them in
            their own.
    """

    GROUP: ClassVar[str] = "cut"

    classes: int | None = setting(None, at_least(2))
    parts: Any = None  # no dict: the command line could not name its keys
    seed: int | None = setting(None, SEED, needs={"classes": None})

    def __post_init__(self) -> None:
        """Check the values. Raises UserError for ``parts`` of another form or with ``classes``."""
        super().__post_init__()
        if self.parts is not None:
            alone = self.classes is None
            require(alone, "cut.classes and cut.parts say the same in two ways; give one of them")
            lists = isinstance(self.parts, dict) and bool(self.parts)
            require(
                lists and all(isinstance(part, list) and part for part in self.parts.values()),
                f"cut.parts must be lists of classes by the names of parts, got {self.parts!r}",
            )

    @property
    def is_whole(self) -> bool:
        """Whether nothing is cut."""
        return self.classes is None and self.parts is None


@dataclass
class PartSpec(Settings):
    """Which set a task is a part of.

    Attributes:
        of: the name of the set; null if the task is no part of one.
        labels: the labels of the set, in the order of their numbers.
    """

    GROUP: ClassVar[str] = "part"

    of: str | None = None
    labels: list[str] = field(default_factory=list)
