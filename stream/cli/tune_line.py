"""What stands behind ``task-stream tune``: settings as for a multirun, and those of the search."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    QuotedString,
    RangeSweep,
)

from stream.cli.command_line import CommandLine
from stream.cli.overrides import check_command_line
from stream.config.compose import override
from stream.config.composition import Composition
from stream.config.paths import conf_folder, from_home
from stream.config.run import RunConfig
from stream.config.setting import SEED
from stream.config.typed import parse
from stream.config.workers import SHORT_FORM, WorkersConfig
from stream.errors import choose, require
from stream.tuning.objective import check_objective
from stream.tuning.options import TuneOptions
from stream.tuning.search import Searched
from stream.tuning.space import Interval, Space, Values, checked, default_space

PREFIX = "tune."
OF_OPTUNA = ("tune.at_once=", "tune.sampler_seed=")
WORKERS = f"{SHORT_FORM}."
DEFAULT_LEARNER = "adapter"
NO_FIGURES = "figures=false"
SPLIT = "evaluation.split"
DECIDED = {
    SPLIT: "a search is judged on validation rows",
    "hydra.sweep.dir": "tune.out=FOLDER names the folder of a search",
    "hydra.run.dir": "tune.out=FOLDER names the folder of a search",
    "sweep": "tune.out=FOLDER names the folder of a search",
    "resume": "the same command goes on with a search",
    "hydra/sweeper": "tune.engine=grid or tune.engine=optuna chooses what is tried",
    "hydra.mode": "a search is a multirun",
    "seed": "tune.seeds=3 gives each trial three runs",
}
"""Settings that a search decides, and what to do instead; a single seed may be given."""
ASSUMED = ("tracking=none", "display=quiet", NO_FIGURES)
"""Settings of a trial's run that may be given otherwise."""


@dataclass(frozen=True)
class TuneLine:
    """A search as it was typed.

    Attributes:
        options: how it searches.
        learners: what is searched, by name in order.
        fixed: the settings of every run, in Hydra's grammar.
        config: the run of the first learner.
        seeds: of the runs of each trial.
        workers: how many runs are done at once, and by what.
        is_quiet: whether no more than the result is shown.
    """

    options: TuneOptions
    learners: list[Searched]
    fixed: list[str]
    config: RunConfig
    seeds: list[int]
    workers: WorkersConfig
    is_quiet: bool

    @property
    def folder(self) -> Path:
        """Where the search goes: the same for the same settings, whatever the number of trials."""
        if self.options.out is not None:
            return from_home(self.options.out)
        searched = [[s.name, sorted(map(str, s.space.items()))] for s in self.learners]
        fixed = sorted(text for text in self.fixed if text != NO_FIGURES)
        text = json.dumps([fixed, searched, self.options.objective, self.seeds])
        names = "-".join(searched.name for searched in self.learners)
        return Path("runs/tune") / f"{names[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def read_line(arguments: Sequence[str]) -> TuneLine:
    """Read what was typed and check that every trial can run.

    Raises:
        UserError: what is wrong, with the valid choices.
    """
    options = _options([text for text in arguments if text.startswith(PREFIX)])
    line = CommandLine(["-m", *(text for text in arguments if not text.startswith(PREFIX))])
    require(line.runs and not line.dry_run, "task-stream tune takes --config-dir and --quiet alone")
    names = _learners(line.overrides)
    spaces: dict[str, Space] = {name: {} for name in names}
    fixed = [text for text in line.settings() if not _take(parse([text])[0], spaces)]
    keys = {override.key_or_group: override for override in parse(fixed)}
    seed: Any = keys["seed"].value() if "seed" in keys else 0
    is_seed = isinstance(seed, int) and not isinstance(seed, bool)
    problem = SEED.problem(seed) if is_seed else "a whole number"
    require(not problem, f"seed must be {problem}, got {seed}")
    fixed = [text for text in fixed if not text.startswith("seed=")]
    workers = _workers(list(keys.values()))
    fixed = [text for text in fixed if not text.startswith(WORKERS)]
    fixed += [text for text in ASSUMED if text.partition("=")[0] not in keys]
    fixed.append(f"{SPLIT}=validation")
    fixed = _first_tasks(fixed, names[0], options.tasks)
    found = [_searched(name, spaces[name], fixed) for name in names]
    _refuse_idle(options, arguments, [searched for searched, _ in found])
    for _, config in found:
        check_objective(options.objective, config)
    return TuneLine(
        options=options,
        learners=[searched for searched, _ in found],
        fixed=fixed,
        config=found[0][1],
        seeds=[seed + place for place in range(options.seeds)],
        workers=workers,
        is_quiet="--quiet" in arguments or line.value("display") == "quiet",
    )


def _options(texts: Sequence[str]) -> TuneOptions:
    """Return the options of a search.

    Raises:
        UserError: an option that does not exist, or a value that it cannot have.
    """
    names = [field.name for field in fields(TuneOptions)]
    given: dict[str, Any] = {}
    before: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.removeprefix(PREFIX).partition("=")
        choose("setting of tune", name, names)
        require(equals == "=" and value != "", f"{text} has no value; give {PREFIX}{name}=VALUE")
        earlier = before.setdefault(name, text)
        told = f"{PREFIX}{name} is given twice ({earlier} and {text}); give it once"
        require(name not in given, told)
        if name == "out":
            given[name] = value
            continue
        (parsed,) = parse([text])
        one = not parsed.is_sweep_override()
        require(one, f"{text}: a search has one {PREFIX}{name}; give it one value")
        given[name] = parsed.value()
    return TuneOptions(**given)


def _refuse_idle(
    options: TuneOptions, arguments: Sequence[str], learners: Sequence[Searched]
) -> None:
    """Raise UserError for an option of Optuna's where no learner is searched by it."""
    engines = [options.engine_for(has_intervals=learner.has_intervals) for learner in learners]
    idle = [text for text in arguments if text.startswith(OF_OPTUNA)]
    require(
        not idle or "optuna" in engines,
        f"{', '.join(idle)} has no effect on a grid; tune.engine=optuna or an interval samples",
    )


def _workers(given: Sequence[Override]) -> WorkersConfig:
    """Return what does the runs; the settings are none of each run.

    Raises:
        UserError: a setting that does not exist, or one that has no effect.
    """
    own = {o.key_or_group.removeprefix(WORKERS): o for o in given if _is_of_workers(o)}
    for name in own:
        choose("setting of workers", name, [field.name for field in fields(WorkersConfig)])
    values: dict[str, Any] = {name: o.value() for name, o in own.items()}
    workers = WorkersConfig(**values)
    told = ", ".join(str(o.input_line) for o in own.values() if o.key_or_group != f"{WORKERS}count")
    require(workers.used or not told, f"{told} has no effect without workers=2 or more")
    launchers = [o.input_line for o in given if o.key_or_group == "hydra/launcher"]
    require(
        not (workers.used and launchers),
        f"workers={workers.count} and {', '.join(map(str, launchers))} both run several trials at "
        "once; give one of them",
    )
    return workers


def _is_of_workers(given: Override) -> bool:
    """Whether a setting says how many runs are done at once."""
    return given.key_or_group.startswith(WORKERS)


def _learners(overrides: Sequence[Override]) -> list[str]:
    """Return the learners that are searched.

    Raises:
        UserError: one is named twice.
    """
    chosen = [o for o in overrides if o.key_or_group == "learner"]
    if not chosen:
        return [DEFAULT_LEARNER]
    last = chosen[-1]
    names = [*last.sweep_string_iterator()] if last.is_sweep_override() else [str(last.value())]
    require(len(set(names)) == len(names), f"{last.input_line} names a learner twice")
    return names


def _take(given: Override, spaces: dict[str, Space]) -> bool:
    """Put what is searched into the spaces; return whether a setting is none of every run.

    Raises:
        UserError: a setting that a search decides, or one of no learner with several values.
    """
    key, text = given.key_or_group, given.input_line
    group, _, name = key.partition(".")
    if key == "learner":
        return True
    if group in spaces and name:
        spaces[group][name] = _values(given)
        return True
    if key == SPLIT and given.value() == "validation":
        return True
    if not given.is_sweep_override():
        is_seed = key == "seed"
        require(key not in DECIDED or is_seed, f"{text} is not for tune: {DECIDED.get(key)}")
        return False
    instead = DECIDED.get(key, "give it one value, or sweep it with task-stream run -m")
    told = f"{text}: tune searches settings of learners (learner.NAME=A,B); {instead}"
    require(group == "learner" and bool(name), told)
    for space in spaces.values():
        space.setdefault(name, _values(given))
    return True


def _values(given: Override) -> Values:
    """Return what is tried of a setting.

    Raises:
        UserError: a sweep of another kind than lists, ranges and intervals.
    """
    sweep = given.value()
    if isinstance(sweep, IntervalSweep):
        assert sweep.start is not None
        assert sweep.end is not None
        return Interval(sweep.start, sweep.end, log="log" in sweep.tags)
    if isinstance(sweep, RangeSweep):
        return tuple(sweep.range())
    if isinstance(sweep, ChoiceSweep):
        return tuple(v.text if isinstance(v, QuotedString) else v for v in sweep.list)
    require(not given.is_sweep_override(), f"{given.input_line}: give a list or an interval")
    return (sweep,)


def _first_tasks(fixed: list[str], learner: str, number: int | None) -> list[str]:
    """Return settings that choose the first tasks alone.

    Raises:
        UserError: there are fewer, or they are learned in another order.
    """
    if number is None:
        return fixed
    config = Composition.of(conf_folder(), [*fixed, f"learner={learner}"]).run_config()
    require(
        config.order == "given",
        f"tune.tasks={number} takes the first tasks of a stream as it is given; with "
        f"order={config.order} name them: 'task=[NAME,...]'",
    )
    names = list(config.task)
    told = f"tune.tasks={number} are more than the {len(names)} tasks of the stream"
    require(number <= len(names), told)
    others = [text for text in fixed if not text.startswith(("stream=", "task="))]
    return [*others, override("task", names[:number])]


def _searched(name: str, given: Space, fixed: Sequence[str]) -> tuple[Searched, RunConfig]:
    """Return a learner that is searched, and its run before.

    Raises:
        UserError: a value that cannot be tried, or a run that cannot start.
    """
    single = {k: v[0] for k, v in given.items() if not isinstance(v, Interval) and len(v) == 1}
    own = [override(f"learner.{key}", value) for key, value in single.items()]
    settings = [*fixed, f"learner={name}", *own]
    composition = Composition.of(conf_folder(), settings)
    swept = ", ".join(composition.sweeps)
    require(
        not swept, f"the experiment sweeps {swept} by itself; give tune an experiment of one run"
    )
    config = composition.run_config()
    several = {key: values for key, values in given.items() if key not in single}
    space = checked(several, config.learner) if several else default_space(config.learner)
    if not several:
        _refuse_fixed(space, settings)
    first = {k: v.low if isinstance(v, Interval) else v[0] for k, v in space.items()}
    tried = [override(f"learner.{key}", value) for key, value in first.items()]
    check_command_line(conf_folder(), CommandLine(["-m", *settings, *tried]))
    fixed_too = {key: (value,) for key, value in single.items()}
    return Searched(name, config.learner, {**fixed_too, **space}), config


def _refuse_fixed(space: Space, settings: Sequence[str]) -> None:
    """Raise UserError for one given value of what would be searched: nothing is left then."""
    searched = {f"learner.{key}" for key in space}
    fixed = [text for text in settings if text.partition("=")[0] in searched]
    require(
        not fixed,
        f"{', '.join(fixed)} leaves nothing to search: give several values (learner.NAME=A,B) of "
        "it or of another setting",
    )
