"""Finds the methods: modules of a package, and entry points of other packages.

A module or entry point that cannot be used breaks nothing but itself: why is kept under its name.
All of them are imported here; `stream.learners.catalogue` remembers what was found.
"""

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from stream.errors import UserError, first_line, require
from stream.learners.base import Learner
from stream.learners.outline import Outline, Target, no_learner, outlined


class Learners(dict[str, type[Learner]]):
    """The methods by name.

    Attributes:
        targets: where each method was found.
        broken: the names that are taken by what is no method, and why it is none.
        blamed: the files that a broken one failed in.
    """

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[str, Target] = {}
        self.broken: dict[str, str] = {}
        self.blamed: set[str] = set()

    def __missing__(self, name: str) -> type[Learner]:
        """Raise UserError: the name is unknown, or what has it is broken."""
        raise no_learner(name, self, self.broken)

    def add(self, name: str, target: Target) -> None:
        """Take a method under a name, which two methods cannot have.

        Args:
            name: its name on the command line.
            target: where it is, if there is one after all; if that fails, the name is broken.
        """
        try:
            learner = _loaded(target.name) if target.is_entry else _defined_in(target.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's file does
            self._break(name, error)
            return
        if learner is None:
            return
        if name in self or name in self.broken:
            other = self.pop(name, None)
            both = ", ".join(kind.__module__ for kind in (other, learner) if kind is not None)
            self.broken[name] = f"two learners are called {name!r}, in {both}; rename one of them"
            return
        learner.name = name
        self[name] = learner
        self.targets[name] = target

    def outlines(self) -> dict[str, Outline]:
        """Return the outline of each method; what has none is broken, such as by its types."""
        found = {}
        for name, learner in list(self.items()):
            try:
                found[name] = outlined(learner, self.targets[name])
            except Exception as error:  # noqa: BLE001 - as for `add`
                del self[name]
                self._break(name, error)
        return found

    def _break(self, name: str, error: BaseException) -> None:
        """Remember why what has a name cannot be used."""
        self.broken[name] = _reason(error)
        self.blamed.update(_files(error))


def find_learners(package: ModuleType, entries: Iterable[EntryPoint]) -> Learners:
    """Import every module of a package, and every entry point, and take the methods they define.

    Args:
        package: its modules define at most one method each, which has the module's name; those
            without one are helpers of others.
        entries: each names a method, which gets the entry point's name.
    """
    found = Learners()
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg:
            found.add(info.name, Target(f"{package.__name__}.{info.name}"))
    for entry in entries:
        found.add(entry.name, Target(entry.value, is_entry=True))
    return found


def _loaded(value: str) -> type[Learner]:
    """Return the method that the value of an entry point names.

    Raises:
        UserError: it is none.
    """
    return _checked(EntryPoint("", value, "").load(), f"entry point {value}")


def _defined_in(name: str) -> type[Learner] | None:
    """Return the method that a module defines; None if it defines none but private ones.

    Raises:
        UserError: it defines several, or one that is not declared as it should be.
    """
    module = importlib.import_module(name)
    defined = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Learner)
        and member is not Learner
        and member.__module__ == module.__name__
        and not member.__name__.startswith("_")
    ]
    names = ", ".join(member.__name__ for member in defined)
    require(len(defined) < 2, f"{module.__file__} defines more than one learner: {names}")
    return _checked(defined[0], module.__file__) if defined else None


def _checked(learner: Any, where: object) -> type[Learner]:
    """Return a method; raise UserError if it is none, or its fields are no hyperparameters."""
    is_one = isinstance(learner, type) and issubclass(learner, Learner) and learner is not Learner
    require(is_one, f"{where} is no class that derives from stream.learners.base.Learner")
    declared = vars(learner).get("__annotations__", {})
    own = [name for name, kind in declared.items() if "ClassVar" not in str(kind)]
    decorated = "__dataclass_fields__" in vars(learner)
    require(decorated or not own, f"{where}: put @dataclass before class {learner.__name__}")
    return learner


def _files(error: BaseException) -> set[str]:
    """Return the files that an import failed in."""
    named = [error.filename] if isinstance(error, SyntaxError) else []
    frames = traceback.extract_tb(error.__traceback__)
    return {name for name in [*named, *(frame.filename for frame in frames)] if name}


def _reason(error: BaseException) -> str:
    """Return why an import failed, with the file and line where it did."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    written = [f for f in frames if not f.filename.startswith("<") and f.filename != __file__]
    own = [f for f in written if not f.filename.startswith((sys.prefix, sys.base_prefix))]
    where = "".join(f"{f.filename}, line {f.lineno}: " for f in (own or written)[-1:])
    return f"{where}{type(error).__name__}: {first_line(error)}"
