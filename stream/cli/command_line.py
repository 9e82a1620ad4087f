"""What stands behind ``task-stream run``: Hydra's flags, and settings in Hydra's grammar."""

import argparse
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self, cast

from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf

from stream.cli.completion import TYPED
from stream.cli.once import refuse_twice
from stream.config.compose import searched_too
from stream.config.loader import CONFIG_NAME, SEARCHED
from stream.config.typed import in_grammar, of_agent, parse, without_dashes
from stream.errors import UserError, choose, require, unknown
from stream.version import installed_version

COMMANDS = ("run", "multirun", "cfg", "info", "shell_completion")
"""Hydra does one of these at a time."""
SHOWN = ("cfg", "info", "help")
"""With one of these Hydra shows something about the settings."""
SHELLS = ("bash", "fish", "zsh")
DRY_RUN = "--dry-run"
SHORT = {"--quiet": "display=quiet"}
"""Flags that stand for a setting."""


class CommandLine:
    """Flags and settings, as Hydra's own parser has them.

    Hydra takes the settings in one piece; here they may stand between the flags.
    """

    def __init__(self, arguments: Sequence[str]):
        """Read the arguments.

        Raises:
            UserError: a flag that does not exist, or a setting that cannot be meant.
        """
        parser = get_args_parser()
        parser.error = _refuse  # type: ignore[method-assign]
        _say_both_versions(parser)
        refuse_twice(parser)
        options = [option for action in parser._actions for option in action.option_strings]
        options += [DRY_RUN, *SHORT]
        self.dry_run = DRY_RUN in arguments
        """Whether to say what would run, and to run nothing."""
        given = [SHORT.get(text, text) for text in arguments if text != DRY_RUN]
        self._arguments = without_dashes(given, options)
        if "WANDB_SWEEP_ID" in os.environ:
            self._arguments = [of_agent(argument) for argument in self._arguments]
        self.flags, unread = _intermixed(parser, self._arguments)
        if unread:
            known = [name for name in options if name.startswith("--")]
            error = unknown("option", unread[0], known)
            raise UserError(f"{error}. A setting is given as NAME=VALUE")
        self._typed = list(self.flags.overrides)
        modes = [text.partition("=")[2] for text in self._typed if text.startswith("hydra.mode=")]
        self.multirun: bool = self.flags.multirun or "MULTIRUN" in [m.upper() for m in modes]
        """Whether several runs are asked for."""
        self.flags.overrides = [in_grammar(text, multirun=self.multirun) for text in self._typed]

    @cached_property
    def overrides(self) -> list[Override]:
        """The settings, parsed.

        Raises:
            UserError: a text that is none.
        """
        return parse(self.flags.overrides)

    @property
    def config_name(self) -> str:
        """The file that says what is composed."""
        return self.flags.config_name or CONFIG_NAME

    @property
    def runs(self) -> bool:
        """Whether something is run, not only shown."""
        other = self.flags.shell_completion or self.flags.hydra_help
        return not self.shows and not other

    @property
    def shows(self) -> bool:
        """Whether the settings are shown."""
        return any(getattr(self.flags, name) for name in SHOWN)

    @property
    def asks_what_fits(self) -> bool:
        """Whether a shell asks what may be typed next."""
        return self.flags.shell_completion and any(t.startswith("query=") for t in self._typed)

    def value(self, key: str) -> str | None:
        """Return the last value that the overrides give a setting; None without one."""
        found = [o.value() for o in self.overrides if o.key_or_group == key]
        if not found or found[-1] is None:
            return None
        return str(OmegaConf.create({"value": found[-1]}).value)  # "\${" is "${"

    def settings(self) -> list[str]:
        """Return the overrides, and the flag that matters for composing as one of them.

        Raises:
            UserError: there is no such folder of YAML files.
        """
        if self.flags.config_dir is None:
            return self.flags.overrides
        given = zip(self.flags.overrides, self.overrides, strict=True)
        texts = [text for text, override in given if override.key_or_group != SEARCHED]
        others = [o.value() for o in self.overrides if o.key_or_group == SEARCHED]
        folders = [str(path) for paths in others if isinstance(paths, list) for path in paths]
        return [*texts, searched_too(Path(self.flags.config_dir), folders)]

    def extended(self, *texts: str) -> Self:
        """Return this command line and more overrides."""
        return self._of([*self._arguments, *texts])

    def _of(self, arguments: Sequence[str]) -> Self:
        """Return a command line with other arguments, and like this one a dry run or not."""
        return type(self)([*arguments, DRY_RUN] if self.dry_run else arguments)

    def without(self, keys: Sequence[str]) -> Self:
        """Return this command line without some of its settings."""
        left_out = [
            typed
            for typed, override in zip(self._typed, self.overrides, strict=True)
            if override.key_or_group in keys
        ]
        return self._of([text for text in self._arguments if text not in left_out])

    def for_hydra(self) -> list[str]:
        """Return the arguments, overrides first."""
        flags = list(self._arguments)
        for text in self._typed:
            flags.remove(text)
        return [*self.flags.overrides, *flags]

    def check_flags(self) -> None:
        """Check that the flags go together.

        Raises:
            UserError: flags that exclude each other, or that have no effect.
        """
        flags = self.flags
        given = [f"--{name.replace('_', '-')}" for name in COMMANDS if getattr(flags, name)]
        if self.dry_run:
            given = [DRY_RUN, *(name for name in given if name not in ("--run", "--multirun"))]
        require(len(given) < 2, f"{' and '.join(given)} exclude each other; give one of them")
        shown = flags.cfg or flags.help
        require(
            flags.experimental_rerun is None,
            "--experimental-rerun reads what no run here writes; results.json has the overrides",
        )
        require(shown or not flags.resolve, "--resolve has no effect without --cfg or --help")
        require(flags.cfg or not flags.package, "--package has no effect without --cfg")
        require(
            flags.config_path is None,
            "--config-path would replace the program's own YAML files; --config-dir adds some",
        )
        if flags.shell_completion:
            asked = flags.overrides[0] if len(flags.overrides) == 1 else ""
            possible = [f"{does}={s}" for does in ("install", "uninstall", "query") for s in SHELLS]
            choose("--shell-completion", asked, possible)
            require(
                not self.asks_what_fits or TYPED in os.environ,
                f"--shell-completion {asked} is what a shell calls; install=SHELL prints what "
                "makes it do so",
            )


def _say_both_versions(parser: argparse.ArgumentParser) -> None:
    """Have ``--version`` print the program's version before Hydra's."""
    for action in parser._actions:
        if isinstance(action, argparse._VersionAction):
            action.version = f"task-stream {installed_version()} ({action.version})"
            action.help = "Show the versions of the program and of Hydra"


def _refuse(message: str) -> NoReturn:
    """Raise UserError with what argparse says."""
    raise UserError(f"cannot read the command line: {message}")


def _intermixed(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, list[str]]:
    """Return the flags, and what was not understood."""
    found: Any = parser.parse_known_intermixed_args(list(arguments))
    return cast("tuple[argparse.Namespace, list[str]]", found)
