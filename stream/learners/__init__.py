"""The catalogue of learners: each module here but `base` is one; its file name is its name."""

import importlib
import pkgutil

from stream.learners.base import Learner


def _find() -> dict[str, type[Learner]]:
    """Import every module of this folder and take the learner that it defines."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name == "base":
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
