"""What a search may be asked for: the settings whose names begin with ``tune.``."""

from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import SEED, Settings, at_least, setting
from stream.errors import require
from stream.metrics.glossary import OF_RUNS

ENGINES = ("auto", "grid", "optuna")
LOWER_IS_BETTER = ("forgetting", "forgetting_first", "wf_10", "nfr", "nfi", "nfr_step", "nfi_step")


@dataclass
class TuneOptions(Settings):
    """How settings are searched.

    Attributes:
        trials: the most settings that are tried of each learner, those beyond the end of a grid
            among them.
        tasks: learn the first so many tasks of the stream alone; null learns all.
        seeds: runs of each trial, with the run's seed and those that follow it; their mean counts.
        objective: the metric of a run that decides, such as ``average_score`` (at the end).
        engine: ``grid`` tries every combination and goes on beyond its ends, ``optuna`` samples;
            ``auto`` samples where an interval is given.
        at_once: trials that Optuna asks for together, for launchers that run several jobs at once.
        sampler_seed: the seed of Optuna's sampler.
        out: the folder of the search; null names one by what is searched.
    """

    GROUP: ClassVar[str] = "tune"

    trials: int = setting(12, at_least(1))
    tasks: int | None = setting(None, at_least(1))
    seeds: int = setting(1, at_least(1, 1000))
    objective: str = setting("average_score", tuple(OF_RUNS))
    engine: str = setting("auto", ENGINES)
    at_once: int = setting(1, at_least(1))
    sampler_seed: int = setting(0, SEED)
    out: str | None = None

    @property
    def sign(self) -> int:
        """1 if a higher value of the objective is better, -1 if a lower one is."""
        return -1 if self.objective in LOWER_IS_BETTER else 1

    def engine_for(self, *, has_intervals: bool) -> str:
        """Return what searches a space.

        Raises:
            UserError: a grid of intervals.
        """
        require(
            not (self.engine == "grid" and has_intervals),
            "tune.engine=grid takes lists of values; an interval needs tune.engine=optuna",
        )
        if self.engine == "auto":
            return "optuna" if has_intervals else "grid"
        return self.engine
