"""The search of learners, each with the same number of trials at most.

A search goes in rounds: what is tried next depends on the whole round before. Those of several
learners go side by side where there are workers, and one after another where there are none.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from stream.config.setting import Settings
from stream.tuning.grid import Grid
from stream.tuning.options import TuneOptions
from stream.tuning.record import LearnerRecord, SeedRun, TrialRecord
from stream.tuning.sampled import Sampled
from stream.tuning.space import Interval, Point, Space

Origin = Literal["grid", "edge", "optuna"]


class Runs(Protocol):
    """What runs trials."""

    @property
    def side_by_side(self) -> bool:
        """Whether rounds of several learners are worth beginning at once."""
        ...

    def begin(self, learner: str, points: Sequence[Point]) -> None:
        """Have points of a learner tried, behind those of earlier calls."""
        ...

    def done(self) -> Iterator[tuple[str, list[SeedRun]]]:
        """Yield a learner and the runs of a point, until all that was begun is done.

        Those of one learner come in the order of its points. More may be begun meanwhile.
        """
        ...


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
        self._has_begun = False
        self._origin: Origin = _origin(self.engine)
        self._round: deque[Point] = deque()

    @property
    def between_rounds(self) -> bool:
        """Whether all trials of the round are noted."""
        return not self._round

    def next_round(self) -> list[Point]:
        """Return what is tried next, nothing when the search is done."""
        if not self._has_begun:
            self._has_begun, points = True, self._draws.first()
        else:
            points, self._origin = self._draws.more(self.record), _origin(self._draws.origin)
        self._round = deque(points)
        return points

    def note(self, runs: list[SeedRun]) -> TrialRecord:
        """Note and return the next trial of the round, whose runs are done."""
        number, point = len(self.record.trials), self._round.popleft()
        trial = TrialRecord.of(number, point, self._origin, runs)
        self.record.trials.append(trial)
        best = self.record.best_of(self._options.sign)
        self.record.best = None if best is None else best.number
        return trial


def tried(searches: Sequence[Search], runs: Runs) -> Iterator[tuple[Search, TrialRecord, bool]]:
    """Try everything; yield a search, its trial that is done, and whether that was its last one.

    The caller may stop at each trial: no round begins before the next one is asked for.

    Args:
        searches: of learners with different names.
        runs: runs trials.
    """
    groups = [searches] if runs.side_by_side else [[search] for search in searches]
    for group in groups:
        named = {search.searched.name: search for search in group}
        for name, search in named.items():
            runs.begin(name, search.next_round())
        for name, of_seeds in runs.done():
            search = named[name]
            trial = search.note(of_seeds)
            points = search.next_round() if search.between_rounds else None
            yield search, trial, points == []
            if points:
                runs.begin(name, points)


def _origin(name: str) -> Origin:
    """Return where trials come from."""
    return "grid" if name == "grid" else "edge" if name == "edge" else "optuna"


def _as_values(space: Space) -> dict[str, Any]:
    """Return a space as JSON values."""
    return {k: vars(v) if isinstance(v, Interval) else list(v) for k, v in space.items()}
