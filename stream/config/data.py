"""Settings: which tasks a run learns, where their rows come from, and how many are used."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

from stream.config.cut import CutSpec
from stream.config.setting import SEED, Settings, at_least, setting
from stream.config.task import TaskSpec
from stream.errors import choose, require
from stream.formatting import CUSTOM

ORDERS = ("given", "reversed", "by_size", "random")  # of every stream
MOST_GENERATED = 10_000_000  # rows of one split, which are made in memory


@dataclass
class StreamConfig(Settings):
    """A named list of tasks.

    Attributes:
        name: the name of the stream.
        tasks: the names of its tasks, in order; by default those of its first order.
        orders: orders in which its tasks were published, by the names that ``order`` takes.
        other_numbers: what other papers call these orders, in words.
        cut: how some of its tasks are cut into several, by class. In ``tasks`` and ``orders``, the
            name of such a task stands for all of its parts.
        shared_labels: groups of tasks whose labels mean the same, name by name, such as the stars
            of two sets of reviews; where one head serves all tasks, such tasks share its outputs.
    """

    GROUP: ClassVar[str] = "stream"

    name: str = CUSTOM
    tasks: list[str] = field(default_factory=list)
    orders: dict[str, list[str]] = field(default_factory=dict)
    other_numbers: dict[str, str] = field(default_factory=dict)
    cut: dict[str, CutSpec] = field(default_factory=dict)
    shared_labels: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless every order has exactly the tasks."""
        super().__post_init__()
        if not self.tasks and self.orders:
            self.tasks = list(next(iter(self.orders.values())))
        for name, order in self.orders.items():
            own = name not in ORDERS
            require(own, f"stream {self.name!r}: order {name!r} is one of every stream; rename it")
            odd = sorted(set(order) ^ set(self.tasks)) or sorted(
                task for task, times in Counter(order).items() if times > 1
            )
            require(
                not odd,
                f"stream {self.name!r}: order {name!r} must have each of its tasks once; wrong: "
                f"{', '.join(odd)}",
            )
        for name in self.other_numbers:
            choose(f"order of stream {self.name!r}", name, self.orders)
        for name in self.cut:
            choose(f"task of stream {self.name!r}", name, self.tasks)
        for group in self.shared_labels:
            several = len(set(group)) > 1
            require(several, f"stream.shared_labels: a group has two tasks or more, got {group}")

    def check_shared(self, tasks: Mapping[str, TaskSpec]) -> None:
        """Check that the tasks of a run can share labels as the stream says.

        Raises:
            UserError: a task that is neither in the stream nor in ``tasks``, or two of these that
                have nothing in common.
        """
        known = dict.fromkeys([*tasks, *self.tasks])
        for name in (name for group in self.shared_labels for name in group):
            choose("task of stream.shared_labels", name, known)
        for group in self.shared_labels:
            for one, other in pairwise(name for name in group if name in tasks):
                require(
                    tasks[one].shares_labels(tasks[other]),
                    f"stream.shared_labels: {one} and {other} have no label in common",
                )

    def with_parts(self, parts: Mapping[str, Sequence[str]]) -> "StreamConfig":
        """Return the stream with the parts of sets in the places of the sets.

        Args:
            parts: the names of the parts, by the name of their set.
        """

        def placed(names: Sequence[str]) -> list[str]:
            return [part for name in names for part in parts.get(name, [name])]

        cut = {name: how for name, how in self.cut.items() if name not in parts}
        orders = {name: placed(order) for name, order in self.orders.items()}
        return replace(self, tasks=placed(self.tasks), orders=orders, cut=cut)


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
        per_class: of each class in the training split. A task of scores or answers counts as one
            class, and a class with fewer rows has all of them taken.
        eval_per_class: of each class in the validation split and in the test split.
        seed: another sample of the training rows; null takes the first ones by a hash of the text.
    """

    GROUP: ClassVar[str] = "limits"

    train: int | None = setting(None, at_least(1))
    eval: int | None = setting(None, at_least(1))
    per_class: int | None = setting(None, at_least(1))
    eval_per_class: int | None = setting(None, at_least(1))
    seed: int | None = setting(None, SEED)
