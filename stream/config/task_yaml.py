"""The YAML file of one task: written so that it is read back as it was, and names for it."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, cast

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from stream.config.complaints import complaints
from stream.config.interpolation import escaped
from stream.config.run import NAME
from stream.config.task import TaskSpec
from stream.errors import require

LONGEST_NAME = 64
REQUIRED = "???"  # what OmegaConf takes for a missing value, but in lists and mappings
SCHEMA_KEY = re.compile(r"[a-z_]+")


class _Quoted(str):
    """A text that is written in double quotes, so that no reader takes it for something else."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes block style, with items of lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of yaml
        """Indent one level more; items of lists too, which yaml leaves at their key's level."""
        del indentless
        super().increase_indent(flow, indentless=False)


_Dumper.add_representer(
    _Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def write_task(name: str, spec: TaskSpec) -> str:
    """Return the YAML of a task: what differs from the defaults, every text quoted.

    Raises:
        UserError: a text that can only mean a missing value.
    """
    return yaml.dump(
        {name: _quoted(escaped(_set_values(spec)))},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
    )


def read_task(text: str, name: str) -> TaskSpec:
    """Return the specification in a task's YAML.

    Raises:
        UserError: it is not the YAML of a task with this name.
    """
    with complaints():
        node = cast("DictConfig", OmegaConf.create(text))
        require(list(node) == [name], f"a task's YAML must hold {name!r} alone, got {list(node)}")
        merged = OmegaConf.merge(OmegaConf.structured(TaskSpec), node[name])
        return cast("TaskSpec", OmegaConf.to_object(merged))


def _set_values(settings: Any) -> dict[str, Any]:
    """Return the values of a dataclass that are not its defaults, by name."""
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        made = field.default if field.default_factory is MISSING else field.default_factory()
        require(value != REQUIRED, f"{field.name}: {REQUIRED!r} means a missing value; rename it")
        if value != made:
            nested = is_dataclass(value) and not isinstance(value, type)
            found[field.name] = _set_values(value) if nested else value
    return found


def _quoted(value: Any) -> Any:
    """Return a value with its texts quoted; keys of the schema stay plain."""
    if isinstance(value, Mapping):
        return {
            key if SCHEMA_KEY.fullmatch(key) else _Quoted(key): _quoted(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_quoted(inner) for inner in value]
    return _Quoted(value) if isinstance(value, str) else value


def is_task_name(name: str) -> bool:
    """Return whether ``task=[NAME]`` and a YAML file both take a name for this very text.

    Letters, digits, '_' and '-'; no number, no truth value, no null; not too long for a file; and
    not the key that Hydra reads in every file.
    """
    if NAME.fullmatch(name) is None or len(name) > LONGEST_NAME or name == "defaults":
        return False
    try:
        on_command_line = OverridesParser.create().parse_override(f"task=[{name}]").value()
    except HydraException:
        return False
    return on_command_line == [name] == list(OmegaConf.create(f"- {name}"))


def proposed_name(text: str, taken: Collection[str] = ()) -> str:
    """Return a valid task name that is like ``text`` and is not taken."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[: LONGEST_NAME - 10] or "task"
    stem = stem if is_task_name(stem) else f"task_{stem}"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
