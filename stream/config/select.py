"""The per-task choice: which candidates learn each task (Houlsby et al. 2019, arXiv 1902.00751).

Section 3: learning rates, adapter sizes and five restarts are tried for each task, and the best on
validation rows is chosen. ``select={lr: [1e-4, 3e-4], size: [8, 64], restarts: 5}`` does so within
a run: a list of values for fields of the learner, and how often each combination starts anew.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from stream.config.setting import Settings, types
from stream.errors import choose, require
from stream.seeding import derive_seed

RESTARTS = "restarts"
MOST_RESTARTS = 1000


@dataclass(frozen=True)
class Candidate:
    """One way to learn a task; without ``select`` there is one, the learner as it is.

    Attributes:
        settings: the learner's settings that differ from the run's.
        restart: which start it is, from 0.
    """

    settings: dict[str, Any]
    restart: int = 0

    def seed(self, of_run: int) -> int:
        """Return the seed of its first weights, batches and dropout: at first the run's own."""
        return derive_seed(of_run, "restart", self.restart) if self.restart else of_run


def candidates_of(select: Any, learner: Settings) -> list[Candidate]:
    """Return the candidates of a run in the order in which they learn each task.

    Args:
        select: lists of values by the learner's fields, and the number of restarts.
        learner: the learner, or the settings that stand for it.

    Raises:
        UserError: a learner whose tasks share what they learn, no such field, no list, or values
            that the learner refuses.
    """
    form = "'select={lr: [1e-4,3e-4], restarts: 5}'"
    require(isinstance(select, Mapping), f"select must name fields of the learner, as {form}")
    tags: Any = learner.tags  # type: ignore[attr-defined]
    name: Any = learner.name  # type: ignore[attr-defined]
    require(
        tags.parameter_isolation and not tags.reads_past_tasks,
        f"select needs a learner whose tasks share nothing that they learn; with learner={name}, "
        "a task goes on from what earlier tasks left. task-stream tune chooses its settings",
    )
    restarts = select.get(RESTARTS, 1)
    is_count = isinstance(restarts, int) and not isinstance(restarts, bool)
    require(
        is_count and 1 <= restarts <= MOST_RESTARTS,
        f"select.{RESTARTS} must be a whole number from 1 to {MOST_RESTARTS}, got {restarts}",
    )
    require(
        restarts == 1 or tags.seeded,
        f"select.{RESTARTS}={restarts} has no effect with learner={name}, which draws nothing",
    )
    values = {key: _values(key, given, learner) for key, given in select.items() if key != RESTARTS}
    require(
        bool(values) or restarts > 1,
        f"select names nothing to choose from; give {form}",
    )
    found = list(_combined(values, restarts))
    for candidate in found:
        replace(learner, **candidate.settings)
    return found


def _combined(values: Mapping[str, list[Any]], restarts: int) -> Iterator[Candidate]:
    """Yield every combination with each of its starts; the last field changes first."""
    for combination in product(*values.values()):
        settings = dict(zip(values, combination, strict=True))
        yield from (Candidate(settings, restart) for restart in range(restarts))


def _values(key: str, given: Any, learner: Settings) -> list[Any]:
    """Return the values of a field; a whole number is a number where one is meant.

    Raises:
        UserError: there is no such field, or no list of different values.
    """
    choose("field of select", key, [*(f.name for f in fields(learner)), RESTARTS])
    require(isinstance(given, list) and bool(given), f"select.{key} must be a list, got {given!r}")
    is_float = types(type(learner))[key] in (float, float | None)
    whole = [isinstance(value, int) and not isinstance(value, bool) for value in given]
    found = [float(v) if is_float and w else v for v, w in zip(given, whole, strict=True)]
    require(len(set(map(repr, found))) == len(found), f"select.{key} has a value twice: {given}")
    return found
