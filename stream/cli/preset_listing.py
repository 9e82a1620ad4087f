"""``task-stream protocols|backbones|experiments``: files of settings, a line each."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stream.cli.listing import add_listing, own_files, print_json, say_broken, say_more
from stream.cli.table import Column, Group, Screen
from stream.config import choices
from stream.config.backbone import BackboneConfig
from stream.config.description import shown_settings

Kind = TypeVar("Kind")
PROTOCOL_COLUMNS = (
    Column("name"),
    Column("settings", 1),
    Column("what it is", 2, is_elastic=True),
)
BACKBONE_COLUMNS = (
    Column("name"),
    Column("encoder", 1, is_elastic=True),
    Column("pooling", 2),
    Column("weights", 3),
    Column("location", 4),
)
EXPERIMENT_COLUMNS = (
    Column("name"),
    Column("what it does", 1, is_elastic=True),
    Column("varies", 2),
)
WEIGHTS = {
    "package": "installed package",
    "hub": "from the hub",
    "folder": "in a folder",
    "random": "random",
}


def add_commands(commands: Any) -> None:
    """Add these listings to the command line."""
    for name, description, execute in (
        ("protocols", "Rows and epochs as published, a line each.", protocols),
        ("backbones", "The encoders, a line each.", encoders),
        ("experiments", "Prepared runs and sweeps, a line each.", experiments),
    ):
        add_listing(commands.add_parser(name, description=description), execute)


def protocols(arguments: argparse.Namespace) -> None:
    """List the protocols."""
    _list_files(
        arguments,
        "protocol",
        choices.protocols(own_files(arguments)),
        PROTOCOL_COLUMNS,
        lambda protocol: [protocol.name, shown_settings(protocol.content), protocol.summary],
        settings_values,
    )


def encoders(arguments: argparse.Namespace) -> None:
    """List the pretrained encoders."""
    _list_files(
        arguments,
        "backbone",
        choices.backbones(own_files(arguments)),
        BACKBONE_COLUMNS,
        lambda backbone: [
            backbone.name,
            backbone.summary or "-",
            str(backbone.content.get("pooling", BackboneConfig.pooling)),
            WEIGHTS.get(str(backbone.content.get("origin")), "-"),
            str(backbone.content.get("location", "-")),
        ],
        settings_values,
    )


def experiments(arguments: argparse.Namespace) -> None:
    """List the prepared runs and sweeps."""
    _list_files(
        arguments,
        "experiment",
        choices.experiments(own_files(arguments)),
        EXPERIMENT_COLUMNS,
        lambda experiment: [
            experiment.name,
            experiment.summary,
            ", ".join(experiment.content.varied) or "-",
        ],
        experiment_values,
    )


def experiment_values(choice: choices.Choice[choices.Experiment]) -> dict[str, Any]:
    """Return a prepared run or sweep as JSON has it."""
    content = choice.content
    return {
        "name": choice.name,
        "note": choice.note,
        "settings": content.settings,
        "varied": content.varied,
        "commands": choice.commands,
        "file": str(choice.file),
    }


def _list_files(
    arguments: argparse.Namespace,
    kind: str,
    found: choices.Choices[Kind],
    columns: Sequence[Column],
    row: Callable[[choices.Choice[Kind]], list[str]],
    values: Callable[[choices.Choice[Kind]], dict[str, Any]],
) -> None:
    """List files of settings.

    Args:
        arguments: of the command line.
        kind: what they are.
        found: the files.
        columns: of the table.
        row: returns the cells of a file.
        values: returns what JSON has of a file.
    """
    if arguments.json:
        print_json({f"{kind}s": list(map(values, found.usable.values())), "broken": found.broken})
        return
    screen = Screen()
    hidden = screen.table(columns, [Group("", list(map(row, found.usable.values())))])
    say_broken(screen, found.broken)
    say_more(screen, hidden, kind)


def settings_values(choice: choices.Choice[dict[str, Any]]) -> dict[str, Any]:
    """Return a file of settings as JSON has it."""
    return {
        "name": choice.name,
        "note": choice.note,
        "settings": choice.content,
        "file": str(choice.file),
    }
