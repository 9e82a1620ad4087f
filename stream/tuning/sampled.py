"""Optuna draws what is tried: TPE, from the scores so far (Bergstra et al. 2011; optuna.org).

Its study is not stored. The sampler has a seed, and trials that are done are not run again, so the
same search draws the same trials and goes on with the next one, as if it had not been stopped.
"""

from importlib import import_module
from typing import Any

from stream.config.setting import Settings
from stream.errors import UserError
from stream.tuning.options import TuneOptions
from stream.tuning.record import LearnerRecord
from stream.tuning.space import Interval, Point, Space


class Sampled:
    """The trials of one learner that Optuna asks for.

    Args:
        space: lists of values and intervals, by the names of settings.
        learner: the learner.
        options: of the search.

    Raises:
        UserError: Optuna is not installed.
    """

    origin = "optuna"

    def __init__(self, space: Space, learner: Settings, options: TuneOptions):
        try:
            optuna: Any = import_module("optuna")  # not among what types are checked against
        except ModuleNotFoundError as error:
            raise UserError(
                "an interval needs Optuna (pip install '.[optuna]'); without it give a list of "
                "values, as learner.lr=5e-4,1e-3,2e-3"
            ) from error
        del learner
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._failed = optuna.trial.TrialState.FAIL
        self._space, self._options = space, options
        sampler = optuna.samplers.TPESampler(seed=options.sampler_seed)
        direction = "maximize" if options.sign > 0 else "minimize"
        self._study = optuna.create_study(sampler=sampler, direction=direction)
        self._asked: list[Any] = []

    def first(self) -> list[Point]:
        """Return the first trials."""
        return self._ask(self._options.trials)

    def more(self, so_far: LearnerRecord) -> list[Point]:
        """Return what to try next, nothing when all trials are done."""
        done = so_far.trials[len(so_far.trials) - len(self._asked) :]
        for asked, trial in zip(self._asked, done, strict=True):
            if trial.score is None:
                self._study.tell(asked, state=self._failed)
            else:
                self._study.tell(asked, trial.score)
        return self._ask(self._options.trials - len(so_far.trials))

    def _ask(self, left: int) -> list[Point]:
        """Return the next trials, as many as are wanted at once and are left."""
        self._asked = [self._study.ask() for _ in range(min(self._options.at_once, left))]
        return [{k: _drawn(t, k, v) for k, v in self._space.items()} for t in self._asked]


def _drawn(trial: Any, key: str, values: Any) -> Any:
    """Return the value that Optuna draws for a setting."""
    if not isinstance(values, Interval):
        return trial.suggest_categorical(key, list(values))
    if values.whole:
        return trial.suggest_int(key, int(values.low), int(values.high), log=values.log)
    return trial.suggest_float(key, values.low, values.high, log=values.log)
