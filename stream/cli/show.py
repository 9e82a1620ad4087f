"""``task-stream show learner|task|stream|backbone|metric NAME``: one of them, with everything."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from stream.cli import listing
from stream.cli.table import Screen
from stream.config import choices
from stream.config.backbone import BackboneConfig
from stream.config.description import SettingDescription, described_settings, shown
from stream.config.task import SourceColumns, TaskSpec
from stream.errors import UserError, choose, require
from stream.learners.description import LearnerDescription, broken_learners, described_learners
from stream.learners.tags import Tags
from stream.metrics.glossary import OF_RUNS, OF_TASKS

TYPES = {
    "float": "number",
    "int": "whole number",
    "str": "text",
    "bool": "true or false",
    "None": "null",
}
TAG_WORDS: Mapping[str, Mapping[bool, str]] = {
    "parameter_isolation": {True: "learning a task changes no byte of what serves an earlier one"},
    "reads_past_tasks": {True: "reads what earlier tasks left, so that their order matters"},
    "is_reference": {True: "a reference: a bound or control that methods are compared with"},
    "is_multitask": {True: "learns all tasks at once, which is no continual learning"},
    "seeded": {False: "draws no random numbers: every seed gives the same result"},
    "uses_encoder": {False: "uses the tokenizer alone, not the encoder, and makes no steps"},
    "learns_spans": {False: "cannot learn span tasks"},
    "sparse_differences": {True: "stores what a task changed as differences at few places"},
    "keeps_pretrained": {False: "does not need the pretrained weights after the last task"},
}
"""What a tag says where it has this value; what else it says goes without saying."""
COMMON = ("lr", "head_lr")
"""The settings that every method has."""
NOT_FOUND = 1


def add_commands(commands: Any) -> None:
    """Add ``show`` to the command line."""
    show = commands.add_parser("show", description="One learner, task, ... with everything.")
    show.add_argument("what", help=", ".join(SHOWN))
    show.add_argument("name", nargs="?", help="its name, as the listing has it")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--config-dir", type=Path, metavar="FOLDER", help="a folder with more YAML files"
    )
    show.set_defaults(execute=_show)


def _show(arguments: argparse.Namespace) -> None:
    """Show one thing.

    Raises:
        UserError: there is no such thing.
    """
    kind = SHOWN[choose("thing to show", arguments.what, SHOWN)]
    listed = f"task-stream {arguments.what}s"
    require(arguments.name is not None, f"show which {arguments.what}? {listed} has the names")
    kind(arguments.name, arguments.config_dir, arguments.json)


def _learner(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a method, or a preset of one."""
    known, presets = described_learners(), choices.presets(extra)
    broken = broken_learners() | presets.broken
    if name in broken:
        raise UserError(f"learner {name!r} cannot be used: {broken[name]}")
    choose("learner", name, [*known, *presets.usable])
    preset = presets.usable.get(name)
    learner = known[choose("learner", preset.content.learner if preset else name, known)]
    if preset:
        learner = _with_values(learner, preset.content.settings)
    if as_json:
        more = {"preset": listing.preset_values(preset)} if preset else {}
        listing.print_json({**learner.to_json(), **more})
        return
    screen = Screen()
    screen.line(f"{name}: {preset.summary if preset else learner.summary}", "bold")
    screen.line()
    screen.definitions(_about(learner, preset))
    screen.line()
    screen.line("Settings, learner.NAME=VALUE", "bold")
    for setting in learner.settings:
        _say_setting(screen, setting)
    screen.line()
    screen.line("For example", "bold")
    for command in examples(name, learner, preset):
        screen.line(f"  {command}")
    if learner.background:
        screen.line()
        screen.line("What the file says about it", "bold")
        for paragraph in learner.background.split("\n\n"):
            screen.paragraph(" ".join(paragraph.split()), "  ")


def _with_values(learner: LearnerDescription, values: Mapping[str, Any]) -> LearnerDescription:
    """Return a method with other defaults.

    Raises:
        UserError: a setting that it does not have.
    """
    for name in values:
        choose(f"setting of {learner.name}", name, [s.name for s in learner.settings])
    changed = [replace(s, default=values.get(s.name, s.default)) for s in learner.settings]
    return replace(learner, settings=tuple(changed))


def _about(
    learner: LearnerDescription, preset: choices.Choice[choices.Preset] | None
) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a method, by name."""
    if preset:
        different = listing.settings_text(preset.content.settings)
        yield "preset", f"{learner.name} with {different}"
    yield "paper", learner.tags.paper
    memory = listing.MEMORY[learner.perfect_memory]
    yield "memory", f"{memory}: {dict(listing.MEMORY_WORDS)[memory]}".removeprefix("-: ")
    yield "stores", f"{learner.tags.stores}, of each task" if learner.tags.stores else ""
    yield "kind", "; ".join(tags_in_words(learner.tags))
    yield "file", _near(Path(preset.file if preset else learner.file))


def tags_in_words(tags: Tags) -> list[str]:
    """Return what the tags of a method say."""
    said = [(field.name, getattr(tags, field.name)) for field in fields(tags)]
    return [TAG_WORDS[name][value] for name, value in said if value in TAG_WORDS.get(name, {})]


def _say_setting(screen: Screen, setting: SettingDescription) -> None:
    """Print a setting: its name and default, and below them what it is."""
    value = shown(setting.default)
    screen.line(f"  {setting.name}={value}")
    valid = setting.valid
    if setting.valid and "None" in setting.type and "null" not in setting.valid:
        valid = f"{setting.valid}, or null"
    kind = type_in_words(setting.type)
    form = valid if "str" in setting.type and valid else ", ".join(t for t in (kind, valid) if t)
    meaning = setting.meaning[:1].upper() + setting.meaning[1:]
    for text in (f"{meaning} ({form})" if meaning else form, setting.effect):
        if text:
            screen.paragraph(text, "      ")


def type_in_words(written: str) -> str:
    """Return a type as people say it.

    >>> type_in_words("float | None")
    'number'
    """
    kinds = [TYPES.get(kind, kind) for kind in written.split(" | ") if kind != "None"]
    return " or ".join(kinds)


def examples(
    name: str, learner: LearnerDescription, preset: choices.Choice[choices.Preset] | None = None
) -> list[str]:
    """Return commands to try: a small run, and one with a setting of its own.

    Args:
        name: the name that is chosen.
        learner: the method.
        preset: the preset, if it is one.
    """
    small = f"task-stream run learner={name} 'task=[sst2,rte]' limits.train=200"
    own = [s for s in learner.settings if s.name not in COMMON and not s.effect]
    free = own or [s for s in learner.settings if not s.effect]
    del preset
    if not free:
        return [small]
    setting = free[-1]
    return [small, f"{small} learner.{setting.name}={_another(setting)}"]


def _another(setting: SettingDescription) -> str:
    """Return a value that a setting may have, not its default where that is easy to say."""
    if isinstance(setting.default, bool):
        return shown(not setting.default)
    names = setting.valid.split(", ") if setting.type == "str" else []
    others = [name for name in names if name != setting.default]
    return (others or [shown(setting.default)])[0]


def _task(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a task."""
    task = _chosen("task", name, choices.tasks(extra))
    if as_json:
        listing.print_json(listing.task_values(task))
        return
    spec = task.content
    screen = Screen()
    screen.line(f"{name}: {spec.title}", "bold")
    screen.line()
    screen.definitions(_about_task(task))
    screen.line()
    screen.line("For example", "bold")
    more = "" if extra is None else f" --config-dir {extra}"
    screen.line(f"  task-stream run 'task=[{name}]'{more}")
    screen.line(f"  task-stream tasks show {name} data=files data.root=FOLDER{more}")


def _about_task(task: choices.Choice[TaskSpec]) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a task, by name."""
    spec = task.content
    texts = {"single": "one text", "pair": "two texts", "span": "a question and a context"}
    yield "source", spec.source
    yield "texts", texts[spec.kind]
    yield (
        "labels",
        f"{listing.labels_text(spec)}{': ' if spec.labels else ''}" + ", ".join(spec.labels or ()),
    )
    yield "metric", f"{spec.metric}: {OF_TASKS[spec.metric].meaning}"
    yield "in files", _columns(spec.files, f"{spec.files.folder}/")
    yield "as published", _columns(spec.original, "") if spec.original.text else ""
    yield "on the hub", _columns(spec.hub, f"{spec.hub.id} {spec.hub.config or ''}".rstrip())
    yield "version", str(spec.version)
    yield "file", _near(task.file)


def _columns(source: SourceColumns, where: str) -> str:
    """Return where the texts and labels of a source are."""
    parts = ", ".join(getattr(source, "splits", {}).values())
    columns = f"text in {', '.join(source.text)}; label in {source.label}"
    return "; ".join(part for part in (where, parts, columns) if part)


def _stream(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a stream."""
    stream = _chosen("stream", name, choices.streams(extra))
    if as_json:
        listing.print_json(listing.stream_values(stream))
        return
    screen = Screen()
    screen.line(f"{name}: {stream.note}".removesuffix(": "), "bold")
    screen.line()
    listed = [(str(place), task) for place, task in enumerate(stream.content, 1)]
    screen.definitions([*listed])
    screen.line()
    screen.definitions([("file", _near(stream.file))])
    screen.line()
    screen.line("For example", "bold")
    screen.line(f"  task-stream run stream={name} learner=adapter")


def _backbone(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a backbone."""
    backbone = _chosen("backbone", name, choices.backbones(extra))
    if as_json:
        listing.print_json(listing.backbone_values(backbone))
        return
    screen = Screen()
    screen.line(f"{name}: {backbone.summary}".removesuffix(": "), "bold")
    screen.line()
    rest = backbone.note.removeprefix(backbone.summary).removeprefix(".").strip()
    screen.definitions([("about", rest), ("file", _near(backbone.file))])
    screen.line()
    screen.line("Settings, backbone.NAME=VALUE", "bold")
    for setting in described_settings(BackboneConfig):
        if setting.name != "name":
            value = backbone.content.get(setting.name, setting.default)
            _say_setting(screen, replace(setting, default=value))
    screen.line()
    screen.line("For example", "bold")
    needed = " backbone.location=PATH" if backbone.content.get("origin") == "folder" else ""
    screen.line(f"  task-stream run backbone={name}{needed} 'task=[sst2,rte]' limits.train=200")


def _metric(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a metric; there is none in a folder of YAML files."""
    require(extra is None, "--config-dir has no effect: metrics are no YAML files")
    known = {**OF_TASKS, **OF_RUNS}
    metric = known[choose("metric", name, known)]
    if as_json:
        listing.print_json(listing.metric_values(name, metric))
        return
    screen = Screen()
    screen.line(f"{name}: {metric.meaning}", "bold")
    screen.line()
    screen.definitions(
        [
            ("formula", metric.formula),
            ("source", metric.source),
            ("no value", metric.undefined),
            ("of", "a task" if name in OF_TASKS else "a run: metrics in results.json"),
        ]
    )
    if name in OF_RUNS:
        screen.line()
        symbols = "R[i,j] is the score on task j after learning task i, k the number of tasks"
        screen.paragraph(f"{symbols} learned, b_j the score of the untrained learner on task j.")


def _chosen(what: str, name: str, found: choices.Choices[Any]) -> choices.Choice[Any]:
    """Return one of the files of a group.

    Raises:
        UserError: there is none of this name, or it cannot be used.
    """
    if name not in found.usable and name in found.broken:
        raise UserError(f"{what} {name!r} cannot be used: {found.broken[name]}")
    return found.usable[choose(what, name, found.usable)]


def _near(path: Path) -> str:
    """Return a path, from the present folder if it is below that."""
    real, here = os.path.realpath(path), os.path.realpath(Path.cwd())
    return os.path.relpath(real, here) if real.startswith(here + os.sep) else real


SHOWN: Mapping[str, Callable[[str, Path | None, bool], None]] = {
    "learner": _learner,
    "task": _task,
    "stream": _stream,
    "backbone": _backbone,
    "metric": _metric,
}
