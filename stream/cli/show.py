"""``task-stream show learner|task|stream|experiment|... NAME``: one, with everything."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stream.cli import listing, preset_listing
from stream.cli.learner_page import show_learner
from stream.cli.page import near, page, say_examples, say_settings
from stream.config import choices
from stream.config.backbone import BackboneConfig
from stream.config.data import StreamConfig
from stream.config.description import described_settings, shown_settings
from stream.config.source import SourceColumns
from stream.config.task import TaskSpec
from stream.errors import UserError, choose, require
from stream.metrics.glossary import OF_RUNS, OF_TASKS


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


def _task(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a task."""
    choose("task", name, choices.names("task", extra))
    task = _chosen("task", name, choices.tasks(extra, only=name))
    if as_json:
        listing.print_json(listing.task_values(task))
        return
    spec = task.content
    screen = page(f"{name}: {spec.title}", _about_task(task))
    learned = f"task-stream run 'task=[{name}]'"
    read = f"task-stream tasks show {name} data=files data.root=FOLDER"
    say_examples(screen, [learned, read], extra)


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
    yield "file", near(task.file)


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
    screen = page(f"{name}: {stream.summary}".removesuffix(": "), _about_stream(stream))
    run = f"task-stream run stream={name}"
    last = list(stream.content.orders)[-1:]
    in_order = [f"{run} order={order} protocol=rows200" for order in last]
    say_examples(screen, [f"{run} learner=adapter", *in_order], extra)


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
    yield "file", near(stream.file)


def _protocol(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a protocol."""
    protocol = _chosen("protocol", name, choices.protocols(extra))
    if as_json:
        listing.print_json(preset_listing.settings_values(protocol))
        return
    screen = page(
        f"{name}: {protocol.summary}".removesuffix(": "),
        [
            ("about", _rest(protocol)),
            ("settings", shown_settings(protocol.content)),
            ("file", near(protocol.file)),
        ],
    )
    say_examples(screen, [f"task-stream run stream=cl5 protocol={name}"], extra)


def _experiment(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a prepared run or sweep."""
    experiment = _chosen("experiment", name, choices.experiments(extra))
    if as_json:
        listing.print_json(preset_listing.experiment_values(experiment))
        return
    settings, varied = experiment.content.settings, experiment.content.varied
    screen = page(
        f"{name}: {experiment.summary}".removesuffix(": "),
        [
            ("about", _rest(experiment)),
            ("settings", shown_settings(settings)),
            *((f"varies {name}", ", ".join(values)) for name, values in varied.items()),
            ("file", near(experiment.file)),
        ],
    )
    sweep = "-m " if varied else ""
    commands = experiment.commands or [f"task-stream run {sweep}experiment={name}"]
    say_examples(screen, commands, extra)


def _backbone(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a backbone."""
    backbone = _chosen("backbone", name, choices.backbones(extra))
    if as_json:
        listing.print_json(preset_listing.settings_values(backbone))
        return
    screen = page(
        f"{name}: {backbone.summary}".removesuffix(": "),
        [("about", _rest(backbone)), ("file", near(backbone.file))],
    )
    settings = [
        replace(setting, default=backbone.content.get(setting.name, setting.default))
        for setting in described_settings(BackboneConfig)
        if setting.name != "name"
    ]
    say_settings(screen, "backbone", settings)
    needed = " backbone.location=PATH" if backbone.content.get("origin") == "folder" else ""
    run = f"task-stream run backbone={name}{needed} 'task=[sst2,rte]' limits.train=200"
    say_examples(screen, [run], extra)


def _metric(name: str, extra: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show a metric; there is none in a folder of YAML files."""
    require(extra is None, "--config-dir has no effect: metrics are no YAML files")
    known = {**OF_TASKS, **OF_RUNS}
    metric = known[choose("metric", name, known)]
    if as_json:
        listing.print_json(listing.metric_values(name, metric))
        return
    screen = page(
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


SHOWN: Mapping[str, Callable[[str, Path | None, bool], None]] = {
    "learner": show_learner,
    "task": _task,
    "stream": _stream,
    "protocol": _protocol,
    "backbone": _backbone,
    "experiment": _experiment,
    "metric": _metric,
}
