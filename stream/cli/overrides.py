"""What stands on the command line, checked before Hydra sees it and before anything is written."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from stream.config.compose import complaints, compose_run, preset_sweeps
from stream.errors import require
from stream.run_folder import LOCK, LOG_NAME

_COMMANDS = ("run", "multirun", "cfg", "info", "shell_completion")
"""Hydra does one of these at a time."""
_RUNS_NOTHING = ("cfg", "info", "shell_completion", "help", "hydra_help", "version")
_WITH_VALUE = (("--config-dir", "-cd"), ("--config-name", "-cn"), ("--config-path", "-cp"))
_WITH_VALUE += (("--cfg", "-c"), ("--package", "-p"))


def check_command_line(folder: Path, arguments: Sequence[str]) -> None:
    """Refuse a command line that cannot run.

    In a multirun, every value of every sweep is tried once.

    Args:
        folder: the YAML files.
        arguments: what stands after ``run_stream.py``.

    Raises:
        UserError: what is wrong, with the valid choices.
    """
    known, rest = _flags().parse_known_args(list(arguments))
    given = [f"--{name.replace('_', '-')}" for name in _COMMANDS if getattr(known, name)]
    require(len(given) < 2, f"{' and '.join(given)} exclude each other; give one of them")
    if known.experimental_rerun or any(getattr(known, name) for name in _RUNS_NOTHING):
        return
    texts = [text for text in rest if not text.startswith("-")]
    if known.config_dir is not None:
        extra = Path(known.config_dir).expanduser()
        require(extra.is_dir(), f"--config-dir {known.config_dir}: no such folder")
        texts.append(f"hydra.searchpath=['file://{extra.resolve()}']")
    _check_overrides(folder, texts, multirun=known.multirun)


def flags_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with flags before overrides: Hydra's parser does not take them mixed."""
    flags, overrides = [], []
    takes_value = False
    for argument in arguments:
        if argument.startswith("-") or takes_value:
            flags.append(argument)
        else:
            overrides.append(argument)
        takes_value = any(argument in names for names in _WITH_VALUE)
    return [*flags, *overrides]


def _flags() -> argparse.ArgumentParser:
    """Return a parser of Hydra's flags as far as they say whether something is run, and how."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for names in (("--run", "-r"), ("--multirun", "-m"), ("--shell-completion", "-sc")):
        parser.add_argument(*names, action="store_true")
    for names in (("--help", "-h"), ("--hydra-help",), ("--version",)):
        parser.add_argument(*names, action="store_true")
    for names in (*_WITH_VALUE, ("--experimental-rerun",)):
        parser.add_argument(*names)
    parser.add_argument("--info", "-i", nargs="?", const="all")
    return parser


def _check_overrides(folder: Path, texts: Sequence[str], *, multirun: bool) -> None:
    """Compose every run once, and refuse what only a multirun can do or only a run."""
    with complaints():
        overrides = OverridesParser.create().parse_overrides(list(texts))
    sweeps = [override for override in overrides if override.is_sweep_override()]
    require(
        multirun or not sweeps,
        "several values in " + ", ".join(str(o.input_line) for o in sweeps) + " need -m (multirun)",
    )
    trials = list(_trials(overrides))
    if multirun:
        _refuse_swept_presets(folder, overrides)
        trials += [[*trials[0], preset] for preset in _preset_values(folder, trials[0])]
    for chosen in trials:
        config, run_folder = compose_run(folder, chosen)
        require(
            multirun or config.sweep is None,
            f"sweep={config.sweep} has no effect without -m (multirun)",
        )
        require(
            multirun or config.resume is not None or not _has_files(run_folder),
            f"the run folder {run_folder} is not empty; choose another hydra.run.dir",
        )


def _trials(overrides: Sequence[Override]) -> Iterator[list[str]]:
    """Yield overrides without sweeps, so that each value of each sweep is in one of them."""
    values = [_values(override) for override in overrides]
    yield [choices[0] for choices in values]
    for position, choices in enumerate(values):
        for choice in choices[1:]:
            yield [choice if i == position else v[0] for i, v in enumerate(values)]


def _preset_values(folder: Path, overrides: Sequence[str]) -> Iterator[str]:
    """Yield an override for every value that the composition itself sweeps (a preset's)."""
    given = {text.partition("=")[0] for text in overrides}
    for key, values in preset_sweeps(folder, overrides).items():
        if key not in given:
            (override,) = OverridesParser.create().parse_overrides([f"{key}={values}"])
            yield from _values(override)


def _refuse_swept_presets(folder: Path, overrides: Sequence[Override]) -> None:
    """Refuse presets that sweep by themselves among several: Hydra would drop what they sweep."""
    fixed = [str(o.input_line) for o in overrides if not o.is_sweep_override()]
    several = [o for o in overrides if o.key_or_group == "experiment" and o.is_sweep_override()]
    for value in (value for override in several for value in _values(override)):
        lost = ", ".join(preset_sweeps(folder, [*fixed, value]))
        require(not lost, f"{value} sweeps {lost} by itself; give it a sweep of its own")


def _values(override: Override) -> list[str]:
    """Return an override once for each of its values."""
    if not override.is_sweep_override():
        assert override.input_line is not None
        return [override.input_line]
    with complaints():
        return [f"{override.get_key_element()}={v}" for v in override.sweep_string_iterator()]


def _has_files(folder: Path) -> bool:
    """Whether something is in the folder, apart from the scraps of a run killed at its start."""
    return folder.is_dir() and any(path.name not in (LOCK, LOG_NAME) for path in folder.iterdir())
