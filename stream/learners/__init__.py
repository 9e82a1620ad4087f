"""The catalogue: each module here but those in `BASES` is a learner, named as its file."""

import importlib
import pkgutil

from stream.learners.base import Learner

BASES = (
    "base",
    "fitted",
    "grown",
    "inserted",
    "keeping",
    "remembering",
    "sequential",
    "sparse",
)


def _find() -> dict[str, type[Learner]]:
    """Import every module of this folder and take the learner that it defines."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name in BASES:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        defined = [
            member
            for member in vars(module).values()
            if isinstance(member, type)
            and issubclass(member, Learner)
            and member.__module__ == module.__name__
        ]
        assert len(defined) == 1, f"{module.__name__} must define exactly one learner: {defined}"
        found[info.name] = defined[0]
    return found


LEARNERS = _find()
