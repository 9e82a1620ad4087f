"""``task-stream tasks [list|show|prepare|inspect]``: tasks before a run."""

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from stream.cli.listing import add_listing
from stream.cli.listing import tasks as list_tasks
from stream.config.compose import override, searched_too
from stream.config.paths import cache_folder, conf_folder, tokenizer_location
from stream.config.run import RunConfig
from stream.config.source import DialectSpec
from stream.config.task_yaml import LONGEST_NAME, is_task_name, proposed_name
from stream.data.build import build_tasks
from stream.data.inspecting.inspection import Inspection, Wanted, inspect_file
from stream.data.inspecting.labels import TARGETS
from stream.data.inspecting.parts import split_path
from stream.data.inspecting.report import report
from stream.data.prepare.account_lines import account_lines
from stream.data.sources.finding import JSON, PARQUET, TEXT
from stream.data.task import Task
from stream.data.text_encoder import TextEncoder
from stream.errors import UserError, require
from stream.files.writable import OWN_TASKS, check_writable, folder_errors
from stream.formatting import count, stream_title
from stream.run.settings import compose_settings

SUFFIXES = (*PARQUET, *JSON, *TEXT, ".gz", ".zip", ".bz2", ".zst", ".xz")
DIALECT_HELP = {
    "encoding": "such as cp1252, if the detected one is wrong",
    "delimiter": "what stands between fields: any text, or tab, pipe, semicolon, comma, space",
    "quoting": "whether quote characters enclose fields; otherwise they are text",
    "header": "whether the first line names the columns; otherwise it is a row",
    "quote": "the character that encloses fields",
    "escape": "the character before a quote, delimiter or line end that is text",
    "skip": "how many lines stand above the table",
    "comment": "how lines begin that are no rows, such as '#'",
    "null_value": r"a value that stands for none, such as \N",
}


def add_commands(commands: Any) -> None:
    """Add ``tasks`` to the command line, which lists them, with its sub-commands."""
    tasks = commands.add_parser("tasks", description="The tasks, a line each; or one of these.")
    add_listing(tasks, list_tasks)
    parts = tasks.add_subparsers(title="commands", metavar="COMMAND")
    # What is given before the name of a sub-command counts too: none has a default of its own.
    listed = parts.add_parser(
        "list", help="the same as without a command", argument_default=argparse.SUPPRESS
    )
    add_listing(listed, list_tasks)

    def add(name: str, what: str) -> argparse.ArgumentParser:
        return parts.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")

    show = add("show", "read one task and account for every row")
    show.add_argument("task", help="a task of conf/task")
    show.add_argument("overrides", nargs="*", help="such as data=files data.root=FOLDER")
    show.set_defaults(execute=partial(_without_json, _show))
    prepare = add("prepare", "fetch and encode a stream once, for later runs")
    prepare.add_argument("overrides", nargs="*", help="such as data=hub stream=glue9")
    prepare.set_defaults(execute=partial(_without_json, _prepare))
    for part in (show, prepare):
        part.add_argument(
            "--config-dir",
            type=Path,
            default=argparse.SUPPRESS,
            help="a folder with more tasks, in task/",
        )
    _add_inspect(add("inspect", "look at a file and write a task YAML for it"))


def _without_json(
    execute: Callable[[argparse.Namespace], None], arguments: argparse.Namespace
) -> None:
    """Call a sub-command that prints no JSON.

    Raises:
        UserError: JSON was asked for.
    """
    require(not arguments.json, "--json is for the list of tasks: task-stream tasks --json")
    execute(arguments)


def _add_inspect(look: argparse.ArgumentParser) -> None:
    """Add the arguments of ``inspect``; each part of a dialect has an option of its name."""
    look.add_argument("files", nargs="+", type=Path, metavar="FILE")
    look.add_argument("--name", help="the task's name (default: the file's)")
    look.add_argument("--text", action="append", default=[], help="a text column (once for each)")
    look.add_argument("--label", help="the label column")
    look.add_argument("--target", choices=TARGETS, help="whether labels are classes or scores")
    for field in fields(DialectSpec):
        help_ = DIALECT_HELP[field.name]
        kind: Any = {"action": argparse.BooleanOptionalAction}
        if "bool" not in str(field.type):
            kind = {"type": int if "int" in str(field.type) else str}
        name = field.name.replace("_", "-")
        look.add_argument(f"--{name}", dest=field.name, default=None, help=help_, **kind)
    look.add_argument(
        "--out", type=Path, default=Path("my-tasks"), help="where task/NAME.yaml goes"
    )
    look.set_defaults(execute=partial(_without_json, _inspect))


def _composed(overrides: Sequence[str], extra: Path | None) -> RunConfig:
    """Compose a configuration; ``extra`` is one more folder of YAML files."""
    config, _ = compose_settings([*overrides, *([] if extra is None else [searched_too(extra)])])
    return config


def _read(config: RunConfig) -> tuple[list[Task], TextEncoder]:
    """Read and encode the tasks of a configuration."""
    encoder = TextEncoder(
        tokenizer_location(config.backbone),
        config.backbone.max_length,
        cache_folder(config.cache),
        revision=config.backbone.revision,
    )
    with Console(stderr=True).status("reading") as status:
        tasks, _ = build_tasks(
            config, encoder, lambda what, detail: status.update(f"{what}: {detail}")
        )
    return tasks, encoder


def _show(arguments: argparse.Namespace) -> None:
    """Print what a task is and what became of its rows."""
    overrides = [override("task", [arguments.task]), *arguments.overrides]
    config = _composed(overrides, arguments.config_dir)
    others = [n for n, s in config.task.items() if arguments.task not in (n, s.part.of)]
    require(
        not others,
        f"show is for one task, {arguments.task!r}; its YAML and the overrides give {others}",
    )
    tasks, _ = _read(config)
    for task in tasks:
        spec = task.spec
        print(f"{spec.title}: {spec.kind}, judged by {spec.metric}. {spec.source}")
        print("\n".join(account_lines(task)))


def _prepare(arguments: argparse.Namespace) -> None:
    """Fetch and encode, so that a run needs no network."""
    config = _composed(arguments.overrides, arguments.config_dir)
    tasks, encoder = _read(config)
    rows = sum(len(split) for task in tasks for split in task.splits.values())
    print(
        f"{stream_title(config.stream_name)}: {count(len(tasks), 'task')}, {rows:,} rows, "
        f"{encoder.encoded:,} of them encoded now; cache: {cache_folder(config.cache)}"
    )


def _inspect(arguments: argparse.Namespace) -> None:
    """Report on files, and write a task YAML for each; none is written if one cannot be."""
    require(arguments.config_dir is None, "--config-dir has no effect on inspect; --out FOLDER")
    require(
        arguments.name is None or len(arguments.files) == 1,
        "--name names one file's task; got more",
    )
    names = _task_names(arguments)
    check_writable(arguments.out / "task", OWN_TASKS)
    dialect = DialectSpec(**{f.name: getattr(arguments, f.name) for f in fields(DialectSpec)})
    wanted = Wanted(tuple(arguments.text), arguments.label, arguments.target, dialect)
    inspected: dict[str, Inspection] = {}
    for name, path in zip(names, arguments.files, strict=True):
        inspected[name] = inspect_file(path, name, wanted)
        print("\n".join(report(inspected[name])))
    folder = arguments.out / "task"
    targets = {name: folder / f"{name}.yaml" for name in names}
    with folder_errors(folder, OWN_TASKS):
        folder.mkdir(parents=True, exist_ok=True)
        for name, found in inspected.items():
            targets[name].write_text(found.yaml, encoding="utf-8")
    for (name, target), path in zip(targets.items(), arguments.files, strict=True):
        stem = proposed_name(_stem(path))
        is_other = arguments.name is None and name != stem
        why = f" (the program has a task {stem!r} of its own)" if is_other else ""
        print(f"written: {shlex.quote(str(target))}{why}")
    where = f"--config-dir {shlex.quote(str(arguments.out))}"
    for name in names:
        print(f"look at its rows: task-stream tasks show {name} data=files {where}")
    ready = [name for name, found in inspected.items() if not found.empty_splits]
    if ready:
        print(f"run it: task-stream run {where} 'task=[{','.join(ready)}]' data=files")


def _task_names(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the files' tasks: the one that was given, or those of the files.

    Raises:
        UserError: a name that a task cannot have, or that another task has.
    """
    is_folder = arguments.out.is_dir() or not arguments.out.exists()
    require(is_folder, f"--out {arguments.out} is a file; name a folder")
    built_in = {path.stem for path in (conf_folder() / "task").glob("*.yaml")}
    written = {path.stem for path in (arguments.out / "task").glob("*.yaml")}
    names: list[str] = []
    for path in arguments.files:
        # A file called like a task of the program gets another name; the user's word is kept.
        given = arguments.name is not None
        name = arguments.name if given else proposed_name(_stem(path), built_in)
        taken = built_in | written | set(names)
        free = proposed_name(name, taken)
        require(
            is_task_name(name),
            f"{name!r} is no task name: at most {LONGEST_NAME} letters, digits, '_' and '-', and "
            f"nothing that YAML reads as a number, truth value or null; say --name {free}",
        )
        if name in built_in:
            raise UserError(
                f"{name!r} is a task of the program, which would run in the place of {path}; say "
                f"--name {free}"
            )
        require(
            name not in names, f"two files give a task {name!r}; inspect one, with --name {free}"
        )
        file = arguments.out / "task" / f"{name}.yaml"
        require(not file.exists(), f"{file} exists already; remove it or say --name {free}")
        names.append(name)
    return names


def _stem(path: Path) -> str:
    """Return a file's name without the suffixes of its format and its packing."""
    name = Path(split_path(path)[1]).name
    while Path(name).suffix.lower() in SUFFIXES:
        name = Path(name).stem
    return name
