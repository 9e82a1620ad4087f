"""``task-stream show learner|task|stream|experiment|... NAME``: one, with everything."""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from stream.cli import listing, preset_listing
from stream.cli.table import Screen
from stream.config import choices
from stream.config.backbone import BackboneConfig
from stream.config.data import StreamConfig
from stream.config.description import (
    SettingDescription,
    described_settings,
    shown,
    shown_settings,
)
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
}
TAG_WORDS: Mapping[str, Mapping[bool, str]] = {
    "reads_past_tasks": {True: "reads what earlier tasks left, so that their order matters"},
    "is_reference": {True: "a reference: a bound or control that methods are compared with"},
    "is_multitask": {True: "learns all tasks at once, which is no continual learning"},
    "seeded": {False: "draws no random numbers: every seed gives the same result"},
    "uses_encoder": {False: "uses the tokenizer alone, not the encoder"},
    "makes_steps": {False: "fits a task at once, without training steps"},
    "learns_spans": {False: "cannot learn span tasks"},
    "sparse_differences": {True: "stores what a task changed as differences at few places"},
    "keeps_pretrained": {False: "does not need the pretrained weights after the last task"},
}
"""What a tag says where it has this value; what else it says goes without saying."""
COMMON = ("lr", "head_lr")
"""The settings that every method has."""
WIDEST_SETTING = 24


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
    kind(arguments.name, listing.own_files(arguments), arguments.json)


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
    title = preset.summary if preset else learner.summary.removesuffix(".")
    screen.paragraph(f"{name}: {title}", style="bold")
    screen.line()
    screen.definitions(_about(learner, preset))
    _say_settings(screen, "learner", learner.settings)
    _say_examples(screen, examples(name, learner.settings), extra if preset else None)
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
        different = shown_settings(preset.content.settings)
        yield "preset", f"{learner.name} with {different or 'its own defaults'}"
    yield "paper", learner.tags.paper
    memory = listing.MEMORY[learner.perfect_memory]
    yield "memory", f"{memory}: {dict(listing.MEMORY_WORDS)[memory]}".removeprefix("-: ")
    yield "stores", learner.tags.stores
    yield "kind", "; ".join(tags_in_words(learner.tags))
    yield "file", _near(Path(preset.file if preset else learner.file))


def tags_in_words(tags: Tags) -> list[str]:
    """Return what the tags of a method say."""
    said = [(field.name, getattr(tags, field.name)) for field in fields(tags)]
    return [TAG_WORDS[name][value] for name, value in said if value in TAG_WORDS.get(name, {})]


def _say_settings(screen: Screen, group: str, settings: Sequence[SettingDescription]) -> None:
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


def examples(name: str, settings: Sequence[SettingDescription]) -> list[str]:
    """Return commands to try: a small run, and one with another value of a setting.

    Args:
        name: the learner, or the preset.
        settings: its settings.
    """
    small = f"task-stream run learner={name} 'task=[sst2,rte]' limits.train=200"
    free = [s for s in settings if not s.effect and isinstance(s.default, bool | int | float)]
    own = [s for s in free if s.name not in COMMON] or free
    if not own:
        return [small]
    default = own[0].default
    if isinstance(default, bool):
        other: float = not default
    else:  # half of a fraction is one too
        other = default / 2 if isinstance(default, float) else 2 * default
    return [small, f"{small} learner.{own[0].name}={shown(other)}"]


def _task(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a task."""
    choose("task", name, choices.names("task", extra))
    task = _chosen("task", name, choices.tasks(extra, only=name))
    if as_json:
        listing.print_json(listing.task_values(task))
        return
    spec = task.content
    screen = _page(f"{name}: {spec.title}", _about_task(task))
    learned = f"task-stream run 'task=[{name}]'"
    read = f"task-stream tasks show {name} data=files data.root=FOLDER"
    _say_examples(screen, [learned, read], extra)


def _about_task(task: choices.Choice[TaskSpec]) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a task, by name."""
    spec = task.content
    yield "source", spec.source
    yield "texts", _texts(spec)
    yield (
        "labels",
        f"{listing.labels_text(spec)}{': ' if spec.labels else ''}" + ", ".join(spec.labels or ()),
    )
    yield "metric", "; ".join(map(_metric_text, spec.all_metrics))
    yield "in files", _columns(spec.files, f"{spec.files.folder}/")
    yield "as published", _columns(spec.original, "") if spec.original.text else ""
    yield "on the hub", _columns(spec.hub, f"{spec.hub.id} {spec.hub.config or ''}".rstrip())
    yield "version", str(spec.version)
    yield "file", _near(task.file)


def _metric_text(name: str) -> str:
    """Return a task's metric and what it means; of a function of the user's own, where it is."""
    return f"{name}: {OF_TASKS[name].meaning}" if name in OF_TASKS else f"the function {name}"


def _texts(spec: TaskSpec) -> str:
    """Return which texts a row has, and how the encoder reads them where the task says it."""
    known = {"single": "one text", "pair": "two texts", "span": "a question and a context"}
    texts = known.get(spec.kind) or f"{spec.num_fields} texts: {', '.join(spec.field_names)}"
    read = " and ".join(map(repr, spec.segments))
    return f"{texts}; read as {read}" if read else texts


def _columns(source: SourceColumns, where: str) -> str:
    """Return where the texts and labels of a source are."""
    parts = ", ".join(getattr(source, "splits", {}).values())
    texts = ", ".join(" + ".join(joined) for joined in source.text_columns)
    columns = f"text in {texts}; label in {source.label}"
    return "; ".join(part for part in (where, parts, columns) if part)


def _stream(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a stream."""
    stream = _chosen("stream", name, choices.streams(extra))
    if as_json:
        listing.print_json(listing.stream_values(stream))
        return
    screen = _page(f"{name}: {stream.summary}".removesuffix(": "), _about_stream(stream))
    run = f"task-stream run stream={name}"
    last = list(stream.content.orders)[-1:]
    in_order = [f"{run} order={order} protocol=rows200" for order in last]
    _say_examples(screen, [f"{run} learner=adapter", *in_order], extra)


def _about_stream(stream: choices.Choice[StreamConfig]) -> Iterator[tuple[str, str]]:
    """Yield what is to be said of a stream, by name."""
    content = stream.content
    yield "about", _rest(stream)
    first, *others = content.orders or [""]
    also = f" (order={first})" if first else ""
    yield "tasks", f"{len(content.tasks)}, in this order{also}: {', '.join(content.tasks)}"
    for order in others:
        yield f"order={order}", ", ".join(content.orders[order])
    yield "elsewhere", "; ".join(f"{o} is {text}" for o, text in content.other_numbers.items())
    shared = "; ".join(", ".join(group) for group in content.shared_labels)
    yield "same labels", shared
    yield "file", _near(stream.file)


def _protocol(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a protocol."""
    protocol = _chosen("protocol", name, choices.protocols(extra))
    if as_json:
        listing.print_json(preset_listing.settings_values(protocol))
        return
    screen = _page(
        f"{name}: {protocol.summary}".removesuffix(": "),
        [
            ("about", _rest(protocol)),
            ("settings", shown_settings(protocol.content)),
            ("file", _near(protocol.file)),
        ],
    )
    _say_examples(screen, [f"task-stream run stream=cl5 protocol={name}"], extra)


def _experiment(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a prepared run or sweep."""
    experiment = _chosen("experiment", name, choices.experiments(extra))
    if as_json:
        listing.print_json(preset_listing.experiment_values(experiment))
        return
    settings, varied = experiment.content.settings, experiment.content.varied
    screen = _page(
        f"{name}: {experiment.summary}".removesuffix(": "),
        [
            ("about", _rest(experiment)),
            ("settings", shown_settings(settings)),
            *((f"varies {name}", ", ".join(values)) for name, values in varied.items()),
            ("file", _near(experiment.file)),
        ],
    )
    sweep = "-m " if varied else ""
    commands = experiment.commands or [f"task-stream run {sweep}experiment={name}"]
    _say_examples(screen, commands, extra)


def _backbone(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a backbone."""
    backbone = _chosen("backbone", name, choices.backbones(extra))
    if as_json:
        listing.print_json(preset_listing.settings_values(backbone))
        return
    screen = _page(
        f"{name}: {backbone.summary}".removesuffix(": "),
        [("about", _rest(backbone)), ("file", _near(backbone.file))],
    )
    settings = [
        replace(setting, default=backbone.content.get(setting.name, setting.default))
        for setting in described_settings(BackboneConfig)
        if setting.name != "name"
    ]
    _say_settings(screen, "backbone", settings)
    needed = " backbone.location=PATH" if backbone.content.get("origin") == "folder" else ""
    run = f"task-stream run backbone={name}{needed} 'task=[sst2,rte]' limits.train=200"
    _say_examples(screen, [run], extra)


def _metric(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a metric; there is none in a folder of YAML files."""
    require(extra is None, "--config-dir has no effect: metrics are no YAML files")
    known = {**OF_TASKS, **OF_RUNS}
    metric = known[choose("metric", name, known)]
    if as_json:
        listing.print_json(listing.metric_values(name, metric))
        return
    screen = _page(
        f"{name}: {metric.meaning}",
        [
            ("formula", metric.formula),
            ("source", metric.source),
            ("no value", metric.undefined),
            ("of", "a task" if name in OF_TASKS else "a run: metrics in results.json"),
        ],
    )
    if name in OF_RUNS:
        screen.line()
        symbols = "R[i,j] is the score on task j after learning task i, k the number of tasks"
        screen.paragraph(f"{symbols} learned, b_j the score of the untrained learner on task j.")


def _page(title: str, said: Iterable[tuple[str, str]]) -> Screen:
    """Return a page that begins with a title and with what is said of it, by name."""
    screen = Screen()
    screen.paragraph(title, style="bold")
    screen.line()
    screen.definitions(said)
    return screen


def _say_examples(screen: Screen, commands: Iterable[str], extra: Path | None) -> None:
    """Say commands to try, each with the folder of more YAML files that it needs."""
    screen.line()
    screen.line("For example", "bold")
    more = "" if extra is None else f" --config-dir {shlex.quote(str(extra))}"
    for command in commands:
        screen.line(f"  {command}{more}")


def _chosen(what: str, name: str, found: choices.Choices[Any]) -> choices.Choice[Any]:
    """Return one of the files of a group.

    Raises:
        UserError: there is none of this name, or it cannot be used.
    """
    if name not in found.usable and name in found.broken:
        raise UserError(f"{what} {name!r} cannot be used: {found.broken[name]}")
    return found.usable[choose(what, name, found.usable)]


def _rest(choice: choices.Choice[Any]) -> str:
    """Return what a file's note says behind its summary."""
    return choice.note.removeprefix(choice.summary).removeprefix(".").strip()


def _near(path: Path) -> str:
    """Return a path, from the present folder if it is below that."""
    real, here = os.path.realpath(path), os.path.realpath(Path.cwd())
    return os.path.relpath(real, here) if real.startswith(here + os.sep) else real


SHOWN: Mapping[str, Callable[[str, Path | None, bool], None]] = {
    "learner": _learner,
    "task": _task,
    "stream": _stream,
    "protocol": _protocol,
    "backbone": _backbone,
    "experiment": _experiment,
    "metric": _metric,
}
