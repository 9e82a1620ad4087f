"""``task-stream learners|tasks|streams|metrics``: what there is, a line each."""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stream.cli.table import Column, Group, Screen
from stream.config import choices
from stream.config.data import StreamConfig
from stream.config.description import shown_settings
from stream.config.task import TaskSpec
from stream.learners.description import LearnerDescription, broken_learners, described_learners
from stream.metrics.glossary import OF_RUNS, OF_TASKS, Explained
from stream.run.settings import register_groups

LEARNER_COLUMNS = (
    Column("name"),
    Column("memory", 1),
    Column("what it does", 2),
    Column("paper", 3),
    Column("stores", 4),
)
PRESET_COLUMNS = (
    Column("name"),
    Column("learner", 1),
    Column("settings", 2),
    Column("what it does", 3, is_elastic=True),
)
TASK_COLUMNS = (
    Column("name"),
    Column("texts", 1),
    Column("labels", 2),
    Column("metric", 3),
    Column("title", 5),
    Column("source", 4, is_elastic=True),
)
STREAM_COLUMNS = (
    Column("name"),
    Column("tasks", 1),
    Column("orders", 3),
    Column("in this order", 2, is_elastic=True),
)
METRIC_COLUMNS = (
    Column("name"),
    Column("what it says", 1, is_elastic=True),
    Column("source", 2, is_elastic=True),
)
MEMORY = {True: "perfect", False: "forgets", None: "-"}
MEMORY_WORDS = (
    ("perfect", "the logits of learned tasks never change, bit for bit"),
    ("forgets", "nothing keeps later tasks from changing what serves a task"),
    ("-", "nothing to forget: all tasks are learned at once"),
)
ARXIV = re.compile(r", arXiv \d+\.\d+")


def add_commands(commands: Any) -> None:
    """Add the listings to the command line, but for that of tasks."""
    add_listing(commands.add_parser("learners", description="The methods, a line each."), learners)
    add_listing(commands.add_parser("streams", description="The streams, a line each."), streams)
    of_metrics = commands.add_parser("metrics", description="The metrics, a line each.")
    add_listing(of_metrics, metrics, has_files=False)


def add_listing(
    parser: argparse.ArgumentParser,
    execute: Callable[[argparse.Namespace], None],
    *,
    has_files: bool = True,
) -> None:
    """Give a listing its arguments.

    Args:
        parser: that of the listing.
        execute: what prints it.
        has_files: whether people can add YAML files of their own.
    """
    parser.add_argument(
        "--json",
        action="store_true",
        default=parser.argument_default or False,
        help="print JSON, with everything known",
    )
    if has_files:
        parser.add_argument(
            "--config-dir", type=Path, metavar="FOLDER", help="a folder with more YAML files"
        )
    parser.set_defaults(execute=execute)


def own_files(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of a person's own files; Hydra then knows all that these may build on."""
    if arguments.config_dir is not None:
        register_groups()
    return arguments.config_dir


def learners(arguments: argparse.Namespace) -> None:
    """List the methods, and the presets of their settings."""
    known, presets = described_learners(), choices.presets(own_files(arguments))
    broken = broken_learners() | presets.broken
    if arguments.json:
        described = [learner.to_json() for learner in known.values()]
        named = [preset_values(preset) for preset in presets.usable.values()]
        print_json({"learners": described, "presets": named, "broken": broken})
        return
    screen = Screen()
    groups = [
        Group(heading, [_learner_row(learner) for learner in members])
        for heading, members in grouped(known.values()).items()
    ]
    hidden = screen.table(LEARNER_COLUMNS, groups)
    screen.line()
    screen.line("Presets: a learner with other settings", "bold")
    rows = [
        [
            choice.name,
            choice.content.learner,
            shown_settings(choice.content.settings),
            choice.summary.partition(" (")[0],
        ]
        for choice in presets.usable.values()
    ]
    screen.table(PRESET_COLUMNS, [Group("", rows)])
    say_broken(screen, broken)
    screen.line()
    screen.line("Memory", "bold")
    screen.definitions(MEMORY_WORDS)
    screen.line()
    headless = [learner.name for learner in known.values() if not learner.tags.uses_encoder]
    screen.paragraph(f"All but {' and '.join(headless)} also train a head for each task.")
    say_more(screen, hidden, "learner")


def grouped(
    known: Iterable[LearnerDescription],
) -> dict[str, list[LearnerDescription]]:
    """Return the methods below headings that say how they treat earlier tasks."""
    groups: dict[str, list[LearnerDescription]] = {
        "Each task has weights of its own": [],
        "Each task has weights of its own, and reads those of earlier tasks": [],
        "All tasks share weights": [],
        "References: bounds and controls to compare with": [],
    }
    isolated, composed, sequential, references = groups.values()
    for learner in known:
        if learner.tags.is_reference or learner.tags.is_multitask:
            references.append(learner)
        elif not learner.tags.parameter_isolation:
            sequential.append(learner)
        else:
            (composed if learner.tags.reads_past_tasks else isolated).append(learner)
    return groups


def _learner_row(learner: LearnerDescription) -> list[str]:
    """Return the cells of a method."""
    tags = learner.tags
    paper = ARXIV.sub("", tags.paper) or "-"
    summary = learner.summary.removesuffix(".")
    return [learner.name, MEMORY[learner.perfect_memory], summary, paper, tags.stores or "-"]


def preset_values(preset: choices.Choice[choices.Preset]) -> dict[str, Any]:
    """Return a preset as JSON has it."""
    content = preset.content
    return {
        "name": preset.name,
        "learner": content.learner,
        "settings": content.settings,
        "note": preset.note,
        "file": str(preset.file),
    }


def tasks(arguments: argparse.Namespace) -> None:
    """List the tasks."""
    found = choices.tasks(own_files(arguments))
    if arguments.json:
        print_json({"tasks": list(map(task_values, found.usable.values())), "broken": found.broken})
        return
    screen = Screen()
    hidden = screen.table(TASK_COLUMNS, [Group("", list(map(_task_row, found.usable.values())))])
    say_broken(screen, found.broken)
    screen.line()
    screen.definitions(
        [
            ("rows of a task", "task-stream tasks show NAME data=files data.root=FOLDER"),
            ("a file of yours", "task-stream tasks inspect FILE"),
            ("learn some", "task-stream run 'task=[sst2,rte]'"),
        ]
    )
    say_more(screen, hidden, "task")


def _task_row(task: choices.Choice[TaskSpec]) -> list[str]:
    """Return the cells of a task."""
    spec = task.content
    return [task.name, spec.kind, labels_text(spec), spec.metric, spec.title, spec.source]


def labels_text(spec: TaskSpec) -> str:
    """Return what is predicted: how many classes, a score, or a span."""
    if spec.score_range is not None:
        return "score {:g}-{:g}".format(*spec.score_range)
    return "span" if spec.labels is None else f"{len(spec.labels)} classes"


def task_values(task: choices.Choice[TaskSpec]) -> dict[str, Any]:
    """Return a task as JSON has it."""
    spec = task.content
    return {
        "name": task.name,
        "title": spec.title,
        "kind": spec.kind,
        "target": spec.target,
        "metric": spec.metric,
        "more_metrics": spec.more_metrics,
        "labels": spec.labels,
        "score_range": spec.score_range,
        "version": spec.version,
        "source": spec.source,
        "hub": spec.hub.id,
        "file": str(task.file),
    }


def streams(arguments: argparse.Namespace) -> None:
    """List the streams."""
    found = choices.streams(own_files(arguments))
    if arguments.json:
        values = list(map(stream_values, found.usable.values()))
        print_json({"streams": values, "broken": found.broken})
        return
    screen = Screen()
    rows = [
        [
            stream.name,
            str(len(stream.content.tasks)),
            _range(stream.content.orders),
            ", ".join(stream.content.tasks),
        ]
        for stream in found.usable.values()
    ]
    hidden = screen.table(STREAM_COLUMNS, [Group("", rows)])
    say_broken(screen, found.broken)
    screen.line()
    screen.paragraph("Any tasks in any order are a stream too: task-stream run 'task=[sst2,rte]'")
    say_more(screen, hidden, "stream")


def _range(names: Iterable[str]) -> str:
    """Return the names of orders in short: the first and the last.

    >>> _range(["published_4", "published_5", "published_6"]), _range([])
    ('published_4 ... published_6', '-')
    """
    ends = list(names)
    return f"{ends[0]} ... {ends[-1]}" if len(ends) > 1 else "".join(ends) or "-"


def stream_values(stream: choices.Choice[StreamConfig]) -> dict[str, Any]:
    """Return a stream as JSON has it."""
    content = stream.content
    return {
        "name": stream.name,
        "note": stream.note,
        "tasks": content.tasks,
        "orders": content.orders,
        "other_numbers": content.other_numbers,
        "shared_labels": content.shared_labels,
        "file": str(stream.file),
    }


def metrics(arguments: argparse.Namespace) -> None:
    """List the metrics."""
    if arguments.json:
        of_tasks = [metric_values(*entry) for entry in OF_TASKS.items()]
        of_runs = [metric_values(*entry) for entry in OF_RUNS.items()]
        print_json({"of_tasks": of_tasks, "of_runs": of_runs})
        return
    screen = Screen()
    hidden = screen.table(
        METRIC_COLUMNS,
        [
            Group("Of a task: how its predictions are scored", _metric_rows(OF_TASKS)),
            Group("Of a run: in metrics of results.json", _metric_rows(OF_RUNS)),
        ],
    )
    say_more(screen, hidden, "metric")


def _metric_rows(known: Mapping[str, Explained]) -> Sequence[Sequence[str]]:
    """Return the cells of metrics."""
    return [[name, metric.meaning, ARXIV.sub("", metric.source)] for name, metric in known.items()]


def metric_values(name: str, metric: Explained) -> dict[str, Any]:
    """Return a metric as JSON has it."""
    return {"name": name, **metric._asdict()}


def print_json(values: object) -> None:
    """Print values as JSON."""
    print(json.dumps(values, indent=2, ensure_ascii=False, default=str))


def say_broken(screen: Screen, broken: Mapping[str, str]) -> None:
    """Say what cannot be used, and why."""
    if broken:
        screen.line()
        screen.line("Cannot be used", "bold")
    for name, reason in broken.items():
        screen.line(f"{name}: {reason}")


def say_more(screen: Screen, hidden: Sequence[str], what: str) -> None:
    """Say where the rest is."""
    screen.line()
    if hidden:
        screen.paragraph(f"Not shown on a narrow screen: {', '.join(hidden)}; --json has all.")
    screen.paragraph(f"One {what}, with everything: task-stream show {what} NAME")
