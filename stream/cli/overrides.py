"""The command line of a run, checked before Hydra sees it and before anything is written."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf

from stream.cli.command_line import CommandLine
from stream.cli.trials import Trials
from stream.config.composition import Composition
from stream.config.effect import check_effects
from stream.config.given import given_settings, refuse_twice
from stream.config.names import GROUPS
from stream.config.run import RunConfig
from stream.config.typed import OPTIONAL, parse
from stream.errors import NeededError, require, unknown
from stream.files.run_folder import refuse_used_folder

ONLY_MULTIRUN = (
    "hydra.sweep.",
    "hydra.sweeper",
    "hydra.launcher",
    "hydra/sweeper",
    "hydra/launcher",
)
"""How the names of settings begin that only a multirun reads."""
DESCRIBED = (
    "stream.name",
    "stream.tasks",
    "stream.orders",
    "stream.other_numbers",
    "stream.cut",
)
"""What the file of a stream says about itself."""
SETTINGS = [field.name for field in fields(RunConfig)]
"""The settings of a run, and the parts that they are in."""
OF_PRESETS = ("hydra.sweeper.params", "hydra.sweeper.search_space")
"""Where a preset (a YAML file) says what it sweeps."""
REPORT = "stream.cli.sweeps.SweepReport"


def check_command_line(folder: Path, line: CommandLine) -> None:
    """Check that a command line can run; in a multirun, every job that it stands for.

    Args:
        folder: the YAML files.
        line: what stands behind ``task-stream run``.

    Raises:
        UserError: what is wrong, with the valid choices.
    """
    line.check_flags()
    if not line.runs and not (line.shows and line.overrides):
        return
    overrides = parse(line.settings())
    refuse_twice(overrides)
    _refuse_without_effect(overrides, multirun=line.multirun)
    trials = Trials(folder, overrides, line.config_name)
    first = trials.first()
    _check_hydra(first, overrides, multirun=line.multirun)
    package = line.flags.package
    if line.flags.cfg == "job" and package and package.partition(".")[0] not in first.settings:
        raise unknown("--package", package, map(str, first.settings))
    if line.multirun:
        shared = first.choice("tracking") == "wandb" and "WANDB_RUN_ID" in os.environ
        require(not shared, "WANDB_RUN_ID names one run, -m starts several: unset it")
        trials.check(first)
    else:
        _check_run(first, line, overrides)


def _check_run(composition: Composition, line: CommandLine, overrides: Sequence[Override]) -> None:
    """Raise UserError unless one run can start; one that is only shown may lack values.

    Args:
        composition: the run.
        line: the command line.
        overrides: its settings.
    """
    try:
        config = composition.run_config()
    except NeededError:
        if line.shows:
            return
        raise
    require(config.sweep is None, f"sweep={config.sweep} has no effect without -m (multirun)")
    if config.resume in (None, "auto"):  # else the recorded settings count
        check_effects([(config, given_settings(overrides))])
    if line.runs and config.resume is None:
        refuse_used_folder(composition.run_folder)


def _refuse_without_effect(overrides: Sequence[Override], *, multirun: bool) -> None:
    """Raise UserError for what only a multirun reads or only a run, and for what nothing reads."""
    sweeps = [str(override.input_line) for override in overrides if override.is_sweep_override()]
    require(multirun or not sweeps, f"several values in {', '.join(sweeps)} need -m (multirun)")
    by_key = {override.key_or_group: override for override in overrides}
    for key, override in by_key.items():
        text = override.input_line
        _refuse_lost_choice(key, override)
        require(
            not key.startswith(DESCRIBED),
            f"{text}: {key} describes the tasks that stream=NAME chose, it chooses none; "
            "choose them with 'task=[sst2,cola]'",
        )
        if multirun:
            _refuse_in_multirun(key, override, by_key)
        else:
            needs = key.startswith(ONLY_MULTIRUN)
            require(not needs, f"{text} has no effect without -m (multirun)")


def _refuse_lost_choice(key: str, override: Override) -> None:
    """Raise UserError for what is taken away, or a choice made beside the one that there is."""
    is_whole = key in SETTINGS and key not in (*GROUPS, *OPTIONAL)
    require(
        not (override.is_delete() and is_whole),
        f"{override.input_line}: settings cannot be taken away; give them other values",
    )
    if key not in GROUPS or (key in OPTIONAL and override.is_delete()):
        return
    require(not override.is_delete(), f"{key} is needed: give {key}=VALUE")
    text = str(override.input_line)
    added = override.is_add() or override.is_force_add()
    require(not added, f"{text}: there is one choice of {key}; give {text.lstrip('+')}")


def _refuse_in_multirun(key: str, override: Override, by_key: Mapping[str, Override]) -> None:
    """Raise UserError for a setting that has no effect in a multirun."""
    text = override.input_line
    require(
        key != "resume" or override.value() is None,
        f"{text} goes on with one run, -m starts several: leave -m out; a sweep that was called "
        "sweep=NAME goes on when it is started again",
    )
    require(
        not key.startswith(OF_PRESETS),
        f"{text}: give what is swept by itself, as seed=1,2 (a preset's file has {OF_PRESETS[0]})",
    )
    require(
        key != "sweep" or not override.is_sweep_override(),
        f"{text}: a sweep has one name; without commas",
    )
    require(key != "hydra.run.dir", f"{text} has no effect with -m (multirun); use hydra.sweep.dir")
    require(
        key != "hydra.sweep.dir" or "sweep" not in by_key,
        f"{text} and sweep=NAME name the same folder; give one of them",
    )
    require(
        key != "hydra.mode" or str(override.value()).upper() != "RUN",
        f"{text} contradicts -m (multirun); leave one of them out",
    )


def _check_hydra(
    composition: Composition, overrides: Sequence[Override], *, multirun: bool
) -> None:
    """Raise UserError for what a preset or the command line makes of Hydra that cannot work here.

    Args:
        composition: the run, or the first job.
        overrides: the command line's settings.
        multirun: whether several runs are asked for.
    """
    hydra = composition.hydra
    own = hydra.callbacks.get("sweep")
    require(
        own is not None and own.get("_target_") == REPORT,
        "hydra.callbacks.sweep is the program's own, which plans sweeps and says how they ended; "
        "give another callback another name",
    )
    require(
        not hydra.job.chdir,
        "hydra.job.chdir=true is not possible: paths mean the folder where the command was given",
    )
    require(
        hydra.output_subdir is None,
        f"hydra.output_subdir={hydra.output_subdir} is not possible: a run folder holds a run "
        "alone, and its results.json the whole configuration",
    )
    for group in ("job_logging", "hydra_logging"):
        require(
            not _writes_file(OmegaConf.to_container(hydra[group], resolve=False)),
            f"hydra/{group}={composition.choice(f'hydra/{group}')} is not possible: it writes into "
            "the run folder, where run.log is the log",
        )
    if multirun:
        _refuse_lowest_score(composition)
    else:
        _refuse_preset_of_sweep(composition, {override.key_or_group for override in overrides})


def _refuse_lowest_score(composition: Composition) -> None:
    """Raise UserError for a sweeper that optimizes, unless it looks for the highest score."""
    direction = composition.hydra.sweeper.get("direction")
    name = str(getattr(direction, "name", direction))
    require(
        direction is None or name == "maximize",
        f"hydra.sweeper.direction={name} looks for the lowest average score; give "
        "hydra.sweeper.direction=maximize",
    )


def _refuse_preset_of_sweep(composition: Composition, given: set[str]) -> None:
    """Raise UserError for a preset that asks for several runs."""
    source = f"experiment={composition.choice('experiment')}"
    lost = [key for key in composition.sweeps if key not in given]
    require(
        not lost,
        f"{source} sweeps {', '.join(lost)}: it needs -m (multirun), or one value for each",
    )
    for group in ("hydra/launcher", "hydra/sweeper"):
        choice = composition.choice(group)
        require(choice == "basic", f"{source} chooses {group}={choice}: it needs -m (multirun)")
    mode = composition.hydra.mode
    require(
        mode is None or mode.name == "RUN",
        f"{source} says hydra.mode={mode and mode.name}: it needs -m (multirun)",
    )


def _writes_file(logging: object) -> bool:
    """Return whether a configuration of Python's logging writes into a file."""
    handlers = logging.get("handlers") if isinstance(logging, Mapping) else None
    return any("filename" in handler for handler in (handlers or {}).values())
