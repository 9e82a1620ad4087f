"""Settings: which tasks a run learns, where their rows come from, and how many are used."""

from dataclasses import dataclass, field
from typing import ClassVar

from stream.config.setting import SEED, Settings, at_least, setting

MOST_GENERATED = 10_000_000  # rows of one split, which are made in memory


@dataclass
class StreamConfig(Settings):
    """A named list of tasks.

    Attributes:
        name: the name of the stream.
        tasks: the names of its tasks, in order.
        shared_labels: groups of tasks whose labels mean the same, name by name, such as the stars
            of two sets of reviews; where one head serves all tasks, such tasks share its outputs.
    """

    GROUP: ClassVar[str] = "stream"

    name: str = "custom"
    tasks: list[str] = field(default_factory=list)
    shared_labels: list[list[str]] = field(default_factory=list)


@dataclass
class GeneratedData(Settings):
    """Miniature tasks from a seeded grammar.

    Attributes:
        source: always ``generated``.
        train: rows of each task's training split, before `Limits` apply.
        validation: rows of each task's validation split.
        test: rows of each task's test split.
        seed: another seed gives other texts.
    """

    GROUP: ClassVar[str] = "data"

    source: str = setting("generated", ("generated",))
    train: int = setting(256, at_least(1, MOST_GENERATED))
    validation: int = setting(64, at_least(1, MOST_GENERATED))
    test: int = setting(64, at_least(1, MOST_GENERATED))
    seed: int = setting(0, SEED)


@dataclass
class FilesData(Settings):
    """The user's own files; each task's YAML says which.

    Attributes:
        source: always ``files``.
        root: the folder that the tasks' folders are relative to; null if all of them are absolute.
    """

    GROUP: ClassVar[str] = "data"

    source: str = setting("files", ("files",))
    root: str | None = None


@dataclass
class HubData(Settings):
    """Data sets of the Hugging Face hub; each task's YAML says which.

    Attributes:
        source: always ``hub``.
        offline: true never uses the network, only the cache.
    """

    GROUP: ClassVar[str] = "data"

    source: str = setting("hub", ("hub",))
    offline: bool = False


DATA = {"generated": GeneratedData, "files": FilesData, "hub": HubData}
"""The sources of rows, by the names that are chosen."""


@dataclass
class Limits(Settings):
    """The largest number of rows that is used of each task; null uses all.

    Attributes:
        train: of the training split.
        eval: of the validation split and of the test split.
    """

    GROUP: ClassVar[str] = "limits"

    train: int | None = setting(None, at_least(1))
    eval: int | None = setting(None, at_least(1))
