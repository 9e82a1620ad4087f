"""What pages of ``task-stream show`` are made of: a title, what is said, settings, examples."""

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from stream.cli.table import Screen
from stream.config.description import SettingDescription, shown, shown_settings

TYPES = {
    "float": "number",
    "int": "whole number",
    "str": "text",
    "bool": "true or false",
}
WIDEST_SETTING = 24


def page(title: str, said: Iterable[tuple[str, str]]) -> Screen:
    """Return a page that begins with a title and with what is said of it, by name."""
    screen = Screen()
    screen.paragraph(title, style="bold")
    screen.line()
    screen.definitions(said)
    return screen


def say_examples(screen: Screen, commands: Iterable[str], extra: Path | None) -> None:
    """Say commands to try, each with the folder of more YAML files that it needs."""
    screen.line()
    screen.line("For example", "bold")
    more = "" if extra is None else f" --config-dir {shlex.quote(str(extra))}"
    for command in commands:
        screen.line(f"  {command}{more}")


def say_settings(screen: Screen, group: str, settings: Sequence[SettingDescription]) -> None:
    """Print settings: each with its default and what is valid, and below that what it means."""
    screen.line()
    screen.line(f"Settings and their defaults: {group}.NAME=VALUE", "bold")
    given = [_given(setting) for setting in settings]
    room = min(max(map(len, given), default=0), WIDEST_SETTING)
    for text, setting in zip(given, settings, strict=True):
        screen.line(f"  {text:{room}}  {_form(setting)}")
        inner = setting.default if isinstance(setting.default, dict) else {}
        said = (setting.meaning.removesuffix("."), setting.effect, shown_settings(inner))
        screen.paragraph("; ".join(text for text in said if text), "      ")


def _given(setting: SettingDescription) -> str:
    """Return a setting with its default; one that holds others has none of its own."""
    is_group = isinstance(setting.default, dict)
    return f"{setting.name}.NAME=VALUE" if is_group else f"{setting.name}={shown(setting.default)}"


def _form(setting: SettingDescription) -> str:
    """Return what values a setting takes, in words."""
    kinds = setting.type.split(" | ")
    named = [TYPES.get(kind, "names with values") for kind in kinds if kind != "None"]
    is_choice = kinds[0] == "str" and setting.valid
    form = setting.valid if is_choice else ", ".join([" or ".join(named), setting.valid])
    return f"{form.removesuffix(', ')}{', or null' if 'None' in kinds else ''}"


def near(path: Path) -> str:
    """Return a path, from the present folder if it is below that."""
    real, here = os.path.realpath(path), os.path.realpath(Path.cwd())
    return os.path.relpath(real, here) if real.startswith(here + os.sep) else real
