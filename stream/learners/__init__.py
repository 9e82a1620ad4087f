"""The methods: a module here that defines a `Learner` is one, and the file's name is its name.

`base` has the contract, `_shared/` what several methods have in common. A method in somebody's own
package is found through the entry-point group ``task_stream.learners``.
"""

import importlib
import pkgutil
from importlib.metadata import entry_points

from stream.errors import require
from stream.learners.base import Learner

ENTRY_POINTS = "task_stream.learners"


def _find() -> dict[str, type[Learner]]:
    """Import every module of this folder, and every entry point, and take what they define."""
    found: dict[str, type[Learner]] = {}
    for info in pkgutil.iter_modules(__path__):
        if info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        defined = [
            member
            for member in vars(module).values()
            if isinstance(member, type)
            and issubclass(member, Learner)
            and member is not Learner
            and member.__module__ == module.__name__
        ]
        require(len(defined) < 2, f"{module.__file__} defines more than one learner: {defined}")
        if defined:
            found[info.name] = defined[0]
    for entry in entry_points(group=ENTRY_POINTS):
        require(entry.name not in found, f"two learners are called {entry.name!r}: {entry.value}")
        learner = entry.load()
        learner.name = entry.name
        found[entry.name] = learner
    return found


LEARNERS = _find()
