"""The YAML files that can be chosen: tasks, streams, protocols, presets of learners and more.

They are read one by one, not composed. A file that cannot be used breaks nothing but its own name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import yaml
from hydra.core.override_parser.types import ChoiceSweep, RangeSweep
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.errors import OmegaConfBaseException

from stream.config.backbone import BackboneConfig
from stream.config.built_on import Whole, builds_on, put_together
from stream.config.compose import override, searched_too
from stream.config.composition import Composition
from stream.config.data import StreamConfig
from stream.config.parts import parts_of
from stream.config.paths import conf_folder, from_home
from stream.config.plain import NotPlainError, part
from stream.config.stream_files import refuse_bases, tasks_of
from stream.config.task import TaskSpec
from stream.config.task_node import task_schema
from stream.config.typed import parse
from stream.config.wording import NAMES, in_plain_words, misplaced
from stream.errors import UserError, choose, one_line, require

Kind = TypeVar("Kind")
SENTENCE_END = re.compile(r"(?<! al)\.\s+|(?<=\?)\s+")
SWEPT = "hydra.sweeper.params."
INDENTED = "#   "


@dataclass(frozen=True)
class Choice(Generic[Kind]):
    """One file that can be chosen.

    Attributes:
        name: its name on the command line.
        file: where it is.
        note: the comment that it begins with, on one line, without its commands.
        content: what it says.
        commands: those in the comment; they are indented there.
    """

    name: str
    file: Path
    note: str
    content: Kind
    commands: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first sentence of the note, without its full stop."""
        return SENTENCE_END.split(self.note, maxsplit=1)[0].removesuffix(".")


@dataclass
class Choices(Generic[Kind]):
    """The files of a group.

    Attributes:
        usable: the choices by name: the program's own, then those of another folder.
        broken: the names whose file cannot be used, and why.
    """

    usable: dict[str, Choice[Kind]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A learner with other settings.

    Attributes:
        learner: the learner.
        settings: the settings that differ.
    """

    learner: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """A prepared run, or a sweep of several.

    Attributes:
        settings: what it sets, by dotted names; choices of groups, such as the learner, come first.
        varied: what differs between its runs, and the values; empty for one run.
    """

    settings: dict[str, Any]
    varied: dict[str, list[str]]


def names(group: str, extra: Path | None = None) -> list[str]:
    """Return the names of a group's files, without reading them.

    Args:
        group: the group, such as ``task``.
        extra: one more folder of YAML files.

    Raises:
        UserError: there is no such folder.
    """
    return list(dict.fromkeys(file.stem for file in _files(group, extra)))


def tasks(extra: Path | None = None, only: str | None = None) -> Choices[TaskSpec]:
    """Return the tasks.

    Args:
        extra: one more folder of YAML files, with tasks in ``task/``.
        only: the name of the one task that is read; None reads all.

    Raises:
        UserError: there is no such folder.
    """
    return _choices("task", extra, partial(_task, extra), only)


def streams(extra: Path | None = None) -> Choices[StreamConfig]:
    """Return the streams, with the parts of the sets that they cut by class.

    ``extra`` is one more folder, with files in ``stream/``.
    """
    return _choices("stream", extra, partial(_stream, extra))


def protocols(extra: Path | None = None) -> Choices[dict[str, Any]]:
    """Return the settings of each protocol by dotted names. ``extra`` is one more folder."""
    return _choices("protocol", extra, partial(_protocol, extra))


def experiments(extra: Path | None = None) -> Choices[Experiment]:
    """Return the prepared runs and sweeps. ``extra`` is one more folder, with ``experiment/``."""
    return _choices("experiment", extra, partial(_experiment, extra))


def backbones(extra: Path | None = None) -> Choices[dict[str, Any]]:
    """Return what each backbone's file sets. ``extra`` is one more folder, with ``backbone/``."""
    return _choices("backbone", extra, partial(_backbone, extra))


def presets(extra: Path | None = None) -> Choices[Preset]:
    """Return the presets of learners. ``extra`` is one more folder, with files in ``learner/``."""
    return _choices("learner", extra, partial(_preset, extra))


def _files(group: str, extra: Path | None) -> list[Path]:
    """Return the files of a group: the program's own, then those of another folder.

    Raises:
        UserError: there is no folder ``extra``.
    """
    folders = [conf_folder()]
    if extra is not None:
        require(from_home(extra).is_dir(), f"--config-dir {extra}: no such folder")
        folders.append(from_home(extra))
    return [file for folder in folders for file in sorted((folder / group).glob("*.yaml"))]


def _choices(
    group: str,
    extra: Path | None,
    read: Callable[[str, dict[str, Any]], Kind],
    only: str | None = None,
) -> Choices[Kind]:
    """Read the files of a group.

    Raises:
        UserError: there is no folder ``extra``.
    """
    found: Choices[Kind] = Choices()
    for file in _files(group, extra):
        name = file.stem
        if only not in (None, name):
            continue
        if name in found.usable:
            found.broken[str(file)] = f"the program has a {group} {name!r}, which is taken instead"
            continue
        try:
            text = file.read_text(encoding="utf-8")
            content = yaml.load(text, Loader=get_yaml_loader())
            require(isinstance(content, dict | None), f"must be {NAMES}, at its top too")
            note, commands = _note(text)
            found.usable[name] = Choice(name, file, note, read(name, content or {}), commands)
        except OmegaConfBaseException as error:
            where = f"{error.full_key}: " if error.full_key else ""
            found.broken[name] = f"{file}: {where}{in_plain_words(error)}"
        except (UserError, yaml.YAMLError, OSError, ValueError) as error:
            found.broken[name] = f"{file}: {one_line(error)}"
        except RecursionError:
            found.broken[name] = f"{file}: a value in it contains itself"
    return found


def _note(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the comment that a file begins with, on one line, and the commands in it.

    Hydra's own lines are none of it.
    """
    lines = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    commands = [line for line in lines if line.startswith(INDENTED)]
    said = [line for line in lines if line not in commands and not line.startswith("# @package")]
    note = " ".join(line.removeprefix("#").strip() for line in said)
    return note, tuple(line.removeprefix("#").strip() for line in commands)


def _of(content: Mapping[str, Any], key: str) -> Any:
    """Return what stands below a key.

    Raises:
        UserError: nothing does.
    """
    require(isinstance(content.get(key), dict), f"it has no settings below {key!r}")
    return content[key]


def _searched(extra: Path | None) -> list[str]:
    """Return what makes Hydra search one more folder of YAML files, if there is one."""
    return [] if extra is None else [searched_too(extra)]


def _task(extra: Path | None, name: str, content: dict[str, Any]) -> TaskSpec:
    """Return a task from its file; one that builds on others is composed."""
    below = _of(content, name)
    if "defaults" in content:
        asked = [override("task", [name]), *_searched(extra)]
        below = Composition.of(conf_folder(), asked).settings.task[name]
    try:
        return part(TaskSpec, below).made()
    except NotPlainError:
        wrong = misplaced(task_schema(), DictConfig(below))
        require(wrong is None, str(wrong))
        return cast("TaskSpec", OmegaConf.to_object(OmegaConf.merge(task_schema(), below)))


def _stream(extra: Path | None, name: str, content: dict[str, Any]) -> StreamConfig:
    """Return a stream from its file: all of it, or what stands below ``stream``."""
    refuse_bases(name, [entry for entry in builds_on(content) if isinstance(entry, str)])
    said = content.get("stream", content)
    named = {**said, "tasks": tasks_of(name, said)} if isinstance(said, dict) else said
    form = OmegaConf.structured(StreamConfig)
    wrong = misplaced(form, DictConfig(named)) if isinstance(named, dict) else None
    require(wrong is None, str(wrong))
    stream = cast("StreamConfig", OmegaConf.to_object(OmegaConf.merge(form, named)))
    parts: dict[str, list[str]] = {}
    for of, cut in stream.cut.items():
        specs = tasks(extra, only=of).usable
        choose(f"task of stream {name!r}", of, specs)
        parts[of] = list(parts_of(of, specs[of].content, cut))
    return stream.with_parts(parts)


def _settings(content: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return the settings of a preset by dotted names, without its own name."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        inner = _settings(value, f"{above}{key}.") if isinstance(value, dict) else None
        found |= {f"{above}{key}": value} if inner is None else inner
    return {key: value for key, value in found.items() if key not in ("protocol", "experiment")}


def _whole(group: str, extra: Path | None, name: str, content: dict[str, Any]) -> Whole:
    """Return what a file says, with the files of its group that it builds on."""
    if builds_on(content):
        return put_together(group, name, _searched(extra))
    chosen: dict[str, Any] = {}
    for entry in content.get("defaults") or []:
        for key, value in entry.items() if isinstance(entry, dict) else ():
            chosen[str(key).removeprefix("override ").removeprefix("/")] = value
    return Whole({k: v for k, v in content.items() if k != "defaults"}, chosen, None)


def _protocol(extra: Path | None, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return what a protocol sets, by dotted names."""
    return _settings(_whole("protocol", extra, name, content).content)


def _experiment(extra: Path | None, name: str, content: dict[str, Any]) -> Experiment:
    """Return a prepared run or sweep from its file."""
    whole = _whole("experiment", extra, name, content)
    given = _settings(whole.content)
    swept = {key for key in given if key.startswith(SWEPT)}
    return Experiment(
        whole.choices | {key: value for key, value in given.items() if key not in swept},
        {key.removeprefix(SWEPT): _values(given[key]) for key in given if key in swept},
    )


def _values(swept: object) -> list[str]:
    """Return the values of a sweep, each as text; what lists none, such as a glob, as it is."""
    (override,) = parse([f"value={swept}"])
    listed = isinstance(override.value(), ChoiceSweep | RangeSweep)
    return [*override.sweep_string_iterator()] if listed else [str(swept)]


def _backbone(extra: Path | None, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return what a backbone's file sets, without its name."""
    said = _whole("backbone", extra, name, content).content
    OmegaConf.merge(OmegaConf.structured(BackboneConfig), said)
    return {key: value for key, value in said.items() if key != "name"}


def _preset(extra: Path | None, name: str, content: dict[str, Any]) -> Preset:
    """Return a preset: the learner that it builds on, and the settings that it changes."""
    bases = builds_on(content)
    require(bool(bases), "its defaults name no learner")
    (base, *more) = bases
    if isinstance(base, str) and not more and base not in names("learner", extra):
        return Preset(base, {key: value for key, value in content.items() if key != "defaults"})
    whole = put_together("learner", name, _searched(extra))
    require(whole.schema is not None, "its defaults name no learner")
    return Preset(str(whole.schema), whole.content)
