"""The reference pages, from docstrings, dataclasses, argparse and the files of conf/.

Nothing is said here that the code does not say; these functions give it the form of a page.
"""

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import stream
from stream.cli.main import COMMANDS
from stream.cli.tune import HELP as TUNE_HELP
from stream.config import choices
from stream.config.backbone import BackboneConfig
from stream.config.cut import CutSpec
from stream.config.data import FilesData, GeneratedData, HubData, Limits, StreamConfig
from stream.config.description import (
    SettingDescription,
    described_settings,
    meanings,
    shown,
    shown_settings,
)
from stream.config.router import RouterConfig
from stream.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    ProbeConfig,
    RunConfig,
    TrainingConfig,
)
from stream.config.setting import Settings
from stream.config.shared_head import SharedHeadConfig
from stream.config.source import DialectSpec, FilesSource, GeneratedText, HubSource
from stream.config.task import TaskSpec
from stream.formatting import count
from stream.learners.description import LearnerDescription, described_learners
from stream.record import ledger, matrix, parts, rows, run_record, selection
from stream.report.tracking import WandbTracking

ARXIV = re.compile(r"arXiv (\d{4}\.\d{4,5})")
CODE = re.compile(r"``(.+?)``")
PARTS: tuple[type[Settings], ...] = (
    *(RunConfig, TrainingConfig, EvaluationConfig, Limits, ProbeConfig, CheckpointConfig),
    SharedHeadConfig,
    *(BackboneConfig, GeneratedData, FilesData, HubData, StreamConfig, RouterConfig),
)
OF_A_TASK: tuple[type[Settings], ...] = (
    FilesSource,
    HubSource,
    GeneratedText,
    DialectSpec,
    CutSpec,
)
RECORDS = (
    *(run_record.RunRecord, parts.MemoryRecord, parts.TimingRecord),
    *(parts.TaskTimes, parts.ProbeRecord, parts.FlopRecord, parts.DataRecord),
    *(parts.LinearProbeRecord, parts.RoutingRecord),
    *(selection.SelectionRecord, selection.CandidateRecord),
    *(matrix.Cell, matrix.Routed, ledger.LedgerRecord, ledger.LedgerRow),
    *(rows.RowRecord, rows.RowTimes, rows.RowProbe, rows.RowLinearProbe),
)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |"
        for line in lines
    )


def page(title: str, *parts: str) -> str:
    """Return a page."""
    return "\n\n".join([f"# {title}", *filter(None, parts)]) + "\n"


def code(text: object) -> str:
    """Return text as code."""
    return f"`{text}`"


def settings_table(settings: Iterable[SettingDescription], group: str) -> str:
    """Return a line for each setting.

    Args:
        settings: they.
        group: what stands before their names on the command line.
    """
    rows = [
        (
            code(f"{group}.{one.name}".lstrip(".")),
            " ".join(filter(None, (one.meaning, f"({one.effect})" if one.effect else ""))),
            code(shown(one.default)) if _typed(one) else "",
            one.valid or ("" if _is_group(one) else code(_written(one.type))),
        )
        for one in settings
    ]
    if not rows:
        return "No settings."
    lines = table(("setting", "meaning", "default", "valid"), rows)
    return f'<div class="settings" markdown>\n\n{lines}\n\n</div>'


def section(kind: type, group: str, level: int = 2) -> str:
    """Return what a class of settings says about itself, and its settings.

    Args:
        kind: the class.
        group: what stands before the names of its settings.
        level: of its heading.
    """
    heading = f"{'#' * level} {_title(kind)}"
    return f"{heading}\n\n{introduction(kind)}\n\n{settings_table(described_settings(kind), group)}"


def _is_group(one: SettingDescription) -> bool:
    """Return whether a setting stands for others, which have a section of their own."""
    return not re.search(r"\b(str|int|float|bool|list|dict)\b", one.type)


def _typed(one: SettingDescription) -> bool:
    """Return whether a setting's default is a value that can be typed, not a group of settings."""
    if one.default is None:
        return "None" in one.type
    return isinstance(one.default, str | int | float | bool) and one.default != "???"


def introduction(what: type) -> str:
    """Return what a docstring says before its sections, in Markdown."""
    text = inspect.cleandoc(vars(what).get("__doc__") or "")
    return CODE.sub(r"`\1`", re.split(r"\n(?=Attributes:|Args:|Raises:)", text)[0].strip())


def learners() -> str:
    """Return every learner: a table of all, then one section each."""
    found = described_learners()
    rows = [
        (f"[`{name}`](#{name})", d.summary, _paper(d), d.tags.stores, _memory(d))
        for name, d in found.items()
    ]
    return page(
        "Learners",
        "On the command line: `task-stream learners`, and `task-stream show learner NAME`.",
        table(("learner", "what it does", "paper", "stores of a task", "forgets"), rows),
        *(_learner(one) for one in found.values()),
        _presets(),
    )


def _learner(one: LearnerDescription) -> str:
    """Return the section of a learner."""
    text = _linked(one.background)
    return f"## {one.name}\n\n{text}\n\n{settings_table(one.settings, 'learner')}"


def _paper(one: LearnerDescription) -> str:
    """Return the paper with a link to it."""
    return _linked(one.tags.paper)


def _linked(text: str) -> str:
    """Return text whose arXiv numbers are links, safe as Markdown."""
    safe = re.sub(r"([*_<>\[\]])", r"\\\1", text)
    return ARXIV.sub(r"[arXiv \1](https://arxiv.org/abs/\1)", safe)


def _memory(one: LearnerDescription) -> str:
    """Return whether it forgets, in a word."""
    return {True: "never", False: "yes", None: "nothing to forget"}[one.perfect_memory]


def _presets() -> str:
    """Return the presets: a learner with other settings."""
    rows = [
        (
            code(name),
            f"[`{preset.content.learner}`](#{preset.content.learner})",
            ", ".join(code(f"{key}={shown(v)}") for key, v in preset.content.settings.items()),
        )
        for name, preset in choices.presets().usable.items()
    ]
    return f"## Presets\n\n{table(('learner=', 'is', 'with'), rows)}"


def settings() -> str:
    """Return every setting of a run, by group, and those of a task's YAML."""
    return page(
        "Settings",
        "A setting is given as `NAME=VALUE`. What a run would use: `task-stream run --cfg job`.",
        *(section(kind, kind.GROUP) for kind in PARTS),
        section(WandbTracking, "tracking"),
        section(TaskSpec, ""),
        *(section(kind, kind.GROUP, level=3) for kind in OF_A_TASK),
    )


def _title(kind: type) -> str:
    """Return the name of a settings class as a heading.

    >>> _title(GeneratedData), _title(DialectSpec)
    ('Generated data', 'Dialect')
    """
    words = re.findall("[A-Z][a-z]*", kind.__name__)
    kept = [word for word in words if word not in ("Config", "Spec")]
    return " ".join(kept).capitalize()


def command_line() -> str:
    """Return the help of every command."""
    run = [sys.executable, "-m", "stream.cli.main", "run", "--help"]  # Hydra's, which knows conf/
    written = subprocess.run(run, capture_output=True, text=True, check=True).stdout.rstrip()
    helps = [("run", written), ("tune", TUNE_HELP.rstrip()), *_helps()]
    sections = [f"## {name}\n\n```text\n{text}\n```" for name, text in helps]
    return page("Command line", "Each command has `--help`.", *sections)


def _helps() -> Iterator[tuple[str, str]]:
    """Yield the name and the help of every command and sub-command."""
    parser = argparse.ArgumentParser("task-stream")
    commands = parser.add_subparsers(metavar="COMMAND")
    for module in dict.fromkeys(command.module for command in COMMANDS.values()):
        import_module(module).add_commands(commands)
    for name, command in commands.choices.items():
        if name in COMMANDS and command.add_help:
            yield name, command.format_help().rstrip()
            for inner, sub in _inner(command):
                yield f"{name} {inner}", sub.format_help().rstrip()


def _inner(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the sub-commands of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def tasks() -> str:
    """Return the tasks, streams, encoders and experiments of conf/."""
    found = choices.tasks().usable
    specs = [
        (code(n), c.content.title, c.content.kind, len(c.content.labels or ()) or "", c)
        for n, c in found.items()
    ]
    rows = [(n, t, k, o, c.content.metric, c.content.source) for n, t, k, o, c in specs]
    streams = [
        (
            code(name),
            count(len(c.content.tasks), "task"),
            c.note,
            ", ".join(map(code, c.content.tasks)),
            ", ".join(map(code, c.content.orders)),
        )
        for name, c in choices.streams().usable.items()
    ]
    protocols = [
        (code(name), code(shown_settings(c.content)), c.note)
        for name, c in choices.protocols().usable.items()
    ]
    encoders = [(code(name), c.note) for name, c in choices.backbones().usable.items()]
    experiments = [
        (code(name), c.note, *(", ".join(map(code, of)) for of in (c.content.varied, c.commands)))
        for name, c in choices.experiments().usable.items()
    ]
    header = ("task", "title", "kind", "labels", "metric", "source")
    return page(
        "Tasks, streams, encoders, experiments",
        "On the command line: `task-stream tasks`, `streams`, `protocols`, `backbones` and "
        "`experiments`.",
        f"## Tasks\n\n{table(header, rows)}",
        f"## Streams\n\n{table(('stream', 'tasks', 'what', 'in order', 'orders'), streams)}",
        f"## Protocols\n\n{table(('protocol', 'settings', 'what'), protocols)}",
        f"## Encoders\n\n{table(('backbone', 'what'), encoders)}",
        f"## Experiments\n\n{table(('experiment', 'what', 'varies', 'command'), experiments)}",
    )


def record() -> str:
    """Return the keys of results.json."""
    sections = []
    for kind in RECORDS:
        meant = meanings(kind)
        keys = [
            (code(name), code(_written(hint)), meant.get(name, ""))
            for base in reversed(kind.__mro__)
            for name, hint in inspect.get_annotations(base).items()
        ]
        title = kind.__name__
        sections.append(
            f"## {title}\n\n{introduction(kind)}\n\n{table(('key', 'type', 'meaning'), keys)}"
        )
    text = CODE.sub(r"`\1`", inspect.getdoc(run_record) or "")
    return page("results.json and rows.jsonl", text, *sections)


def _written(hint: object) -> str:
    """Return a type as Python writes it."""
    plain = isinstance(hint, type) and not hasattr(hint, "__args__")
    return hint.__name__ if plain else re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(hint))


def python() -> str:
    """Return the Python API: what `stream` offers, with its docstrings."""
    sections = []
    for name in ("run_stream", "load", "Results"):
        what = getattr(stream, name)
        sections.append(f"## stream.{name}\n\n{_signature(name, what)}\n\n{_docstring(what)}")
        if inspect.isclass(what):
            for inner, member in vars(what).items():
                if not inner.startswith("_"):
                    of = getattr(member, "fget", None) or getattr(member, "func", None) or member
                    called = inspect.isfunction(member)
                    shown_as = _signature(f"results.{inner}", of) if called else ""
                    title = f"### results.{inner}"
                    sections.append("\n\n".join(filter(None, (title, shown_as, _docstring(of)))))
    return page("Python", _docstring(stream), *sections)


def _signature(name: str, what: Callable[..., object]) -> str:
    """Return how something is called."""
    parameters = inspect.signature(what).parameters.values()
    own = ",\n    ".join(_written(one) for one in parameters if one.name != "self")
    return f"```python\n{name}(\n    {own},\n)\n```".replace("(\n    ,\n)", "()")


def _docstring(what: object) -> str:
    """Return a docstring in Markdown; a section becomes a list."""
    lines: list[str] = []
    listed = False
    for line in (inspect.getdoc(what) or "").splitlines():
        if line in ("Args:", "Attributes:", "Raises:"):
            lines += [f"**{line.removesuffix(':')}**", ""]
            listed = True
        elif listed and re.match(r" {4}\w[\w ]*: ", line):
            name, _, text = line.strip().partition(": ")
            lines.append(f"- `{name}`: {text}")
        elif line.startswith(">>> "):
            lines.append(f"    {line.partition('  # doctest')[0].rstrip()}")
        else:
            lines.append(f"  {line.strip()}" if listed and line.startswith(" " * 8) else line)
    return CODE.sub(r"`\1`", "\n".join(lines))


PAGES: dict[str, Callable[[], str]] = {
    "learners": learners,
    "settings": settings,
    "command-line": command_line,
    "tasks": tasks,
    "record": record,
    "python": python,
}


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in PAGES.items():
        (folder / f"{name}.md").write_text(made(), encoding="utf-8")
