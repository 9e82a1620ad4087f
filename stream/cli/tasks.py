"""``task-stream tasks show|prepare|inspect``: tasks before a run."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from stream.config.compose import searched_too
from stream.config.paths import cache_folder, tokenizer_location
from stream.config.run import NAME, RunConfig
from stream.config.task import DialectSpec
from stream.data.build import build_tasks
from stream.data.inspect_file import inspect_file
from stream.data.prepare.account_lines import account_lines
from stream.data.task import Task
from stream.data.text_encoder import TextEncoder
from stream.errors import require
from stream.formatting import count
from stream.run.settings import compose_settings


def add_commands(commands: Any) -> None:
    """Add ``tasks`` to the command line, with its three sub-commands."""
    tasks = commands.add_parser("tasks", description=__doc__)
    parts = tasks.add_subparsers(required=True, metavar="COMMAND")
    show = parts.add_parser("show", help="read one task and account for every row")
    show.add_argument("task", help="a task of conf/task")
    show.add_argument("overrides", nargs="*", help="such as data=files data.root=FOLDER")
    show.add_argument("--config-dir", type=Path, help="a folder with more tasks, in task/")
    show.set_defaults(execute=_show)
    prepare = parts.add_parser("prepare", help="fetch and encode a stream once, for later runs")
    prepare.add_argument("overrides", nargs="*", help="such as data=hub stream=glue9")
    prepare.add_argument("--config-dir", type=Path, help="a folder with more tasks, in task/")
    prepare.set_defaults(execute=_prepare)
    look = parts.add_parser("inspect", help="look at a file and write a task YAML for it")
    look.add_argument("files", nargs="+", type=Path, metavar="FILE")
    look.add_argument("--name", help="the task's name (default: the file's)")
    look.add_argument("--text", action="append", default=[], help="a text column (twice for pairs)")
    look.add_argument("--label", help="the label column")
    look.add_argument("--encoding", help="such as cp1252, if the detected one is wrong")
    look.add_argument("--delimiter", help="one character, if the detected one is wrong")
    look.add_argument("--no-header", action="store_true", help="the first line is a row")
    look.add_argument(
        "--out", type=Path, default=Path("my-tasks"), help="where task/NAME.yaml goes"
    )
    look.set_defaults(execute=_inspect)


def _build(
    overrides: Sequence[str], extra: Path | None
) -> tuple[RunConfig, list[Task], TextEncoder]:
    """Compose a configuration, then read and encode its tasks."""
    config, _ = compose_settings([*overrides, *([] if extra is None else [searched_too(extra)])])
    encoder = TextEncoder(
        tokenizer_location(config.backbone),
        config.backbone.max_length,
        cache_folder(config.cache),
        revision=config.backbone.revision,
    )
    with Console(stderr=True).status("reading") as status:
        tasks, _ = build_tasks(config, encoder, lambda name: status.update(f"reading {name}"))
    return config, tasks, encoder


def _show(arguments: argparse.Namespace) -> None:
    """Print what a task is and what became of its rows."""
    overrides = [f"task=[{arguments.task}]", *arguments.overrides]
    _, (task,), _ = _build(overrides, arguments.config_dir)
    spec = task.spec
    print(f"{spec.title}: {spec.kind}, judged by {spec.metric}. {spec.source}")
    print("\n".join(account_lines(task)))


def _prepare(arguments: argparse.Namespace) -> None:
    """Fetch and encode, so that a run needs no network."""
    config, tasks, encoder = _build(arguments.overrides, arguments.config_dir)
    rows = sum(len(split) for task in tasks for split in task.splits.values())
    print(
        f"{config.stream_name}: {count(len(tasks), 'task')}, {rows:,} rows, "
        f"{encoder.encoded:,} of them encoded now; cache: {cache_folder(config.cache)}"
    )


def _inspect(arguments: argparse.Namespace) -> None:
    """Report on files, and write a task YAML for each."""
    require(
        arguments.name is None or len(arguments.files) == 1,
        "--name names one file's task; got more",
    )
    dialect = DialectSpec(
        encoding=arguments.encoding,
        delimiter=arguments.delimiter,
        header=False if arguments.no_header else None,
    )
    names = []
    for path in arguments.files:
        found = inspect_file(path, dialect, tuple(arguments.text), arguments.label)
        print("\n".join(found.lines()))
        name = arguments.name or path.name.split(".")[0].replace(" ", "_")
        is_name = NAME.fullmatch(name) is not None
        require(is_name, f"{name!r} is no task name; choose one with --name")
        target = arguments.out / "task" / f"{name}.yaml"
        require(not target.exists(), f"{target} exists already; remove it or choose another --name")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(found.task_yaml(name), encoding="utf-8")
        print(f"written: {target}")
        names.append(name)
    print(
        f"run it: task-stream run --config-dir {arguments.out} 'task=[{','.join(names)}]' "
        "data=files"
    )
