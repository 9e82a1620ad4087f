"""The jobs of a multirun, tried before the first of them runs.

What chooses YAML files (groups, presets) or changes a task is composed, once for each combination.
The values of all other settings are set in what was composed: the same dataclasses check them.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    OverrideType,
    RangeSweep,
    Sweep,
    ValueType,
)

from stream.config.complaints import complaints
from stream.config.composition import Composition
from stream.config.effect import check_effects
from stream.config.given import given_settings
from stream.config.loader import choices_of
from stream.config.names import GROUPS
from stream.config.run import RunConfig
from stream.config.typed import parse
from stream.errors import require

LARGEST = 2000
"""Of a grid with more jobs, each value is tried once instead of all combinations."""
CHOOSE_NO_TASK = ("learner", "data", "backbone", "tracking")


class Trials:
    """The jobs that the settings of a multirun stand for.

    Args:
        folder: the YAML files.
        overrides: the settings, in Hydra's grammar.
        config_name: the file that says what is composed.
    """

    def __init__(self, folder: Path, overrides: Sequence[Override], config_name: str):
        self._folder, self._config_name = folder, config_name
        self._typed = {override.key_or_group for override in overrides}
        self._given = given_settings(o for o in overrides if not o.is_sweep_override())
        self._swept = [override for override in overrides if override.is_sweep_override()]
        self._fixed = [str(o.input_line) for o in overrides if not o.is_sweep_override()]
        self._composed: dict[tuple[str, ...], Composition] = {}
        self._with_tasks: dict[tuple[str, ...], RunConfig] = {}

    def first(self) -> Composition:
        """Return the first job.

        Raises:
            UserError: it cannot be composed.
        """
        return self._new([values[0] for values in map(self._values, self._swept)])

    def check(self, first: Composition) -> None:
        """Try the jobs.

        Args:
            first: the first one.

        Raises:
            UserError: one cannot run, or a sweep would be lost or is not possible.
        """
        check_effects(map(self._tried, self._combinations(first)[0]))

    def jobs(self) -> tuple[list[tuple[list[str], RunConfig]], int]:
        """Return what is swept in each job with its configuration, and how many jobs there are.

        Of a large grid, and where a sweeper chooses, these are some of the jobs.

        Raises:
            UserError: as `check`.
        """
        first = self.first()
        jobs, total = self._combinations(first)
        sampled = first.hydra.sweeper.get("n_trials")
        return [(list(job), self._tried(job)[0]) for job in jobs], sampled or total

    def _combinations(self, first: Composition) -> tuple[list[Sequence[str]], int]:
        """Return the jobs to try, and how many a grid has.

        Raises:
            UserError: a sweep would be lost or is not possible.
        """
        first.run_config()
        self._refuse_swept_presets()
        given = {text.lstrip("+~").partition("=")[0] for text in self._fixed}
        given |= {override.key_or_group for override in self._swept}
        of_preset = [f"{key}={v}" for key, v in first.sweeps.items() if key not in given]
        self._swept += parse(of_preset)
        grid = first.choice("hydra/sweeper") == "basic"
        self._refuse_impossible_sweeps(grid=grid)
        values = [self._values(override) for override in self._swept]
        if not grid:
            values = [v + _end(o) for o, v in zip(self._swept, values, strict=True)]
        total = prod(map(len, values))
        everything = grid and total <= LARGEST
        return list(product(*values) if everything else _each_value_once(values)), total

    def _refuse_impossible_sweeps(self, *, grid: bool) -> None:
        """Raise UserError for sweeps of Hydra's own settings, and for what a grid does not have."""
        for override in self._swept:
            text = override.input_line
            require(
                not override.key_or_group.startswith("hydra"),
                f"{text}: Hydra's own settings cannot be swept; give one value",
            )
            require(
                not (grid and override.is_interval_sweep()),
                f"{text} needs a sweeper that samples (hydra/sweeper=optuna, which pip install "
                "'.[optuna]' brings); hydra/sweeper=basic takes a list of values",
            )
            require(
                grid or override.value_type != ValueType.GLOB_CHOICE_SWEEP,
                f"{text}: only hydra/sweeper=basic takes glob(...); give a list of names",
            )

    def _refuse_swept_presets(self) -> None:
        """Raise UserError for presets that sweep themselves among several: Hydra drops that."""
        for override in self._swept:
            values = self._values(override) if override.key_or_group == "experiment" else []
            for value in values:
                lost = ", ".join(self._new([value]).sweeps)
                require(not lost, f"{value} sweeps {lost} by itself; give it a sweep of its own")

    def _values(self, override: Override) -> list[str]:
        """Return a swept setting with each of its values; with both ends of an interval."""
        key, sweep = override.get_key_element(), override.value()
        if isinstance(sweep, IntervalSweep):
            return [f"{key}={end}" for end in (sweep.start, sweep.end)]
        if override.value_type == ValueType.GLOB_CHOICE_SWEEP:
            choices = choices_of(self._folder, override.key_or_group, self._fixed)
            found = override._value.filter(choices)  # type: ignore[union-attr]
            require(bool(found), f"{override.input_line} fits none of: {', '.join(choices)}")
        else:
            items = sweep.list if isinstance(sweep, ChoiceSweep) else []
            nested = any(isinstance(item, Sweep) for item in items)
            require(not nested, f"{override.input_line}: a list of values holds no range or choice")
            with complaints():
                found = list(override.sweep_string_iterator())
            require(bool(found), f"{override.input_line} has no value")
        return [f"{key}={value}" for value in found]

    def _new(self, texts: Sequence[str]) -> Composition:
        """Compose the settings with one value and some values of others."""
        return Composition.of(self._folder, [*self._fixed, *texts], self._config_name)

    def _tried(self, job: Sequence[str]) -> tuple[RunConfig, dict[str, Any]]:
        """Return a job's typed objects, and the settings that were given for it.

        Raises:
            UserError: it cannot run.
        """
        settings = parse(job)
        chosen = tuple(str(o.input_line) for o in settings if _chooses(o))
        values = [override for override in settings if not _chooses(override)]
        of_tasks = tuple(
            str(o.input_line)
            for o in settings
            if _chooses(o) and o.key_or_group not in CHOOSE_NO_TASK
        )
        like = self._with_tasks.get(of_tasks)
        if chosen not in self._composed:
            task = [] if like is None else [f"task=['{_any_task(like)}']"]
            self._composed[chosen] = self._new([*chosen, *task])
        config = self._composed[chosen].with_values(values, like)
        self._with_tasks.setdefault(of_tasks, config)
        return config, self._given | given_settings(
            o for o in settings if o.key_or_group in self._typed
        )


def _any_task(config: RunConfig) -> str:
    """Return a task of a run that has a file; a part of a set that is cut has none."""
    name, spec = next(iter(config.task.items()))
    return spec.part.of or name


def _end(override: Override) -> list[str]:
    """Return the end of a range as a setting: to sweepers that sample it belongs to the range."""
    sweep = override.value()
    if not isinstance(sweep, RangeSweep) or sweep.shuffle:
        return []
    start, stop = sweep.start or 0, sweep.stop or 0
    return [f"{override.get_key_element()}={start + (stop - start) // sweep.step * sweep.step}"]


def _chooses(override: Override) -> bool:
    """Return whether a setting chooses what is composed, or changes a task."""
    key = override.key_or_group
    changes = override.type in (OverrideType.CHANGE, OverrideType.FORCE_ADD)
    return not changes or key in GROUPS or key.startswith("task.")


def _each_value_once(values: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield jobs so that each value is in one of them, beside the first values of the others."""
    yield [choices[0] for choices in values]
    for position, choices in enumerate(values):
        for choice in choices[1:]:
            yield [choice if i == position else v[0] for i, v in enumerate(values)]
