"""The search: one learner after another, each with the same number of trials at most."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stream.config.setting import Settings
from stream.tuning.grid import Grid
from stream.tuning.options import TuneOptions
from stream.tuning.record import LearnerRecord, SeedRun, TrialRecord
from stream.tuning.sampled import Sampled
from stream.tuning.space import Interval, Point, Space

Origin = Literal["grid", "edge", "optuna"]
Runner = Callable[[str, Sequence[Point]], Iterator[list[SeedRun]]]
"""Runs points of a learner, of this name; yields the runs of each, in order, as they are done."""


@dataclass(frozen=True)
class Searched:
    """A learner whose settings are searched.

    Attributes:
        name: as ``learner=NAME`` has it.
        learner: its settings in the run.
        space: what is searched.
    """

    name: str
    learner: Settings
    space: Space

    @property
    def has_intervals(self) -> bool:
        """Whether a setting is searched in an interval."""
        return any(isinstance(values, Interval) for values in self.space.values())


class Search:
    """The search of one learner.

    Args:
        searched: the learner.
        options: of the search.

    Raises:
        UserError: a grid with too many trials, or an interval without Optuna.
    """

    def __init__(self, searched: Searched, options: TuneOptions):
        self.searched, self._options = searched, options
        self.engine = options.engine_for(has_intervals=searched.has_intervals)
        self._draws: Grid | Sampled
        if self.engine == "grid":
            self._draws = Grid(searched.space, searched.learner, options.trials, options.sign)
        else:
            self._draws = Sampled(searched.space, searched.learner, options)
        self.record = LearnerRecord(engine=self.engine, space=_as_values(searched.space))

    def run(self, run: Runner, show: Callable[[TrialRecord], None]) -> LearnerRecord:
        """Try everything; return the record, which is `record` and up to date meanwhile.

        Args:
            run: runs trials.
            show: called after every trial.
        """
        points, origin = self._draws.first(), _origin(self.engine)
        while points:
            for point, runs in zip(points, run(self.searched.name, points), strict=True):
                number = len(self.record.trials)
                trial = TrialRecord.of(number, point, origin, runs)
                self.record.trials.append(trial)
                best = self.record.best_of(self._options.sign)
                self.record.best = None if best is None else best.number
                show(trial)
            points, origin = self._draws.more(self.record), _origin(self._draws.origin)
        return self.record


def _origin(name: str) -> Origin:
    """Return where trials come from."""
    return "grid" if name == "grid" else "edge" if name == "edge" else "optuna"


def _as_values(space: Space) -> dict[str, Any]:
    """Return a space as JSON values."""
    return {k: vars(v) if isinstance(v, Interval) else list(v) for k, v in space.items()}
