"""What stands on the command line, checked before Hydra sees it and before anything is written."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from stream.config.compose import (
    complaints,
    compose_run,
    preset_sweeps,
    searched_too,
)
from stream.config.effect import check_effects
from stream.config.given import given_settings
from stream.errors import require
from stream.run.session import refuse_used_folder

_COMMANDS = ("run", "multirun", "cfg", "info", "shell_completion")
"""Hydra does one of these at a time."""
_RUNS_NOTHING = ("cfg", "info", "shell_completion", "help", "hydra_help", "experimental_rerun")


class CommandLine:
    """What stands behind ``task-stream run``: flags and overrides, as Hydra's own parser has them.

    Hydra takes the overrides in one piece; here they may stand between the flags.
    """

    def __init__(self, arguments: Sequence[str]):
        self._arguments = list(arguments)
        self.flags = get_args_parser().parse_intermixed_args(self._arguments)

    @property
    def multirun(self) -> bool:
        """Whether several runs are asked for."""
        return self.flags.multirun

    def value(self, key: str) -> str | None:
        """Return the last value that the overrides give a setting; None without one."""
        found = [o.value() for o in _parsed(self.flags.overrides) if o.key_or_group == key]
        return None if not found or found[-1] is None else str(found[-1])

    def settings(self) -> list[str]:
        """Return the overrides, and the flag that matters for composing as one of them.

        Raises:
            UserError: there is no such folder of YAML files.
        """
        if self.flags.config_dir is None:
            return self.flags.overrides
        return [*self.flags.overrides, searched_too(Path(self.flags.config_dir))]

    def extended(self, text: str) -> Self:
        """Return this command line and one more override."""
        return type(self)([*self._arguments, text])

    def for_hydra(self) -> list[str]:
        """Return the arguments, overrides first."""
        flags = list(self._arguments)
        for text in self.flags.overrides:
            flags.remove(text)
        return [*self.flags.overrides, *flags]


def check_command_line(folder: Path, line: CommandLine) -> None:
    """Check that a command line can run; in a multirun, each value of each sweep is tried once.

    Args:
        folder: the YAML files.
        line: what stands behind ``task-stream run``.

    Raises:
        UserError: what is wrong, with the valid choices.
    """
    given = [f"--{n.replace('_', '-')}" for n in _COMMANDS if getattr(line.flags, n)]
    require(len(given) < 2, f"{' and '.join(given)} exclude each other; give one of them")
    shown = line.flags.cfg or line.flags.help
    require(shown or not line.flags.resolve, "--resolve has no effect without --cfg or --help")
    if not any(getattr(line.flags, name) for name in _RUNS_NOTHING):
        _check_overrides(folder, line.settings(), multirun=line.multirun)


def _check_overrides(folder: Path, texts: Sequence[str], *, multirun: bool) -> None:
    """Compose every run once, and refuse what only a multirun can do or only a run."""
    overrides = _parsed(texts)
    sweeps = [override for override in overrides if override.is_sweep_override()]
    require(
        multirun or not sweeps,
        "several values in " + ", ".join(str(o.input_line) for o in sweeps) + " need -m (multirun)",
    )
    trials = list(_trials(overrides))
    if multirun:
        _refuse_swept_presets(folder, overrides)
        trials += [[*trials[0], preset] for preset in _preset_values(folder, trials[0])]
    runs = []
    for chosen in trials:
        config, run_folder = compose_run(folder, chosen)
        if config.resume in (None, "auto"):  # else the recorded settings count
            runs.append((config, given_settings(chosen)))
        require(
            multirun or config.sweep is None,
            f"sweep={config.sweep} has no effect without -m (multirun)",
        )
        if not multirun and config.resume is None:
            refuse_used_folder(run_folder)
    check_effects(runs)


def _parsed(texts: Sequence[str]) -> list[Override]:
    """Return overrides as Hydra's grammar has them.

    Raises:
        UserError: a text that is none.
    """
    with complaints():
        return OverridesParser.create().parse_overrides(list(texts))


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
            yield from _values(*_parsed([f"{key}={values}"]))


def _refuse_swept_presets(folder: Path, overrides: Sequence[Override]) -> None:
    """Raise UserError for presets that sweep themselves among several: Hydra would drop that."""
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
