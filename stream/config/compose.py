"""From conf/ and overrides to a typed `RunConfig`; Hydra's complaints become one line."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from stream.config.backbone import BackboneConfig
from stream.config.members import not_a_member, unusable
from stream.config.run import RunConfig
from stream.errors import NeededError, UserError, first_line, require, unknown

CONFIG_NAME = "config"

# Workers of a parallel sweep get both by importing this module. Their answers are cached in the
# configuration, and Hydra hands that cache to every job: one token, one folder a sweep.
OmegaConf.register_new_resolver("token", lambda: secrets.token_hex(2), use_cache=True, replace=True)
OmegaConf.register_new_resolver(
    "sweep_folder",
    lambda name, otherwise: otherwise if name is None else f"runs/sweeps/{name}",
    use_cache=True,
    replace=True,
)


def register(groups: Mapping[str, Mapping[str, type]]) -> None:
    """Put the run's schema and each group's dataclasses (learner, data, tracking) in the store.

    A dataclass with a field of a type that a setting cannot have is remembered as unusable.
    """
    store = ConfigStore.instance()
    store.store(name="run_schema", node=RunConfig)
    store.store(group="backbone", name="backbone_schema", node=BackboneConfig)
    for group, members in groups.items():
        for name, schema in members.items():
            try:
                store.store(group=group, name=name, node=schema)
            except OmegaConfBaseException as error:
                unusable(group, {name: f"{schema.__module__}: {first_line(error)}"})


def to_objects(composed: DictConfig) -> RunConfig:
    """Return the typed objects of a composed configuration.

    Raises:
        UserError: a value that the dataclass refuses, or a missing one.
    """
    try:
        config = OmegaConf.to_object(composed)
    except MissingMandatoryValue as error:
        raise NeededError(f"{error.full_key} is needed: give {error.full_key}=VALUE") from error
    except OmegaConfBaseException as error:
        raise UserError(str(error)) from error
    return cast("RunConfig", config)


def restore(values: Mapping[str, Any], groups: Mapping[str, type]) -> RunConfig:
    """Return the configuration that a run recorded (its ``asdict``).

    Args:
        values: the recorded values; what is missing takes its default.
        groups: the dataclass of each group that was chosen (learner, data, tracking).

    Raises:
        UserError: values that this version does not understand.
    """
    with complaints():
        schema = OmegaConf.structured(RunConfig)
        for group, chosen in groups.items():
            schema[group] = OmegaConf.structured(chosen)
        merged = OmegaConf.merge(schema, dict(values))
    return to_objects(cast("DictConfig", merged))


@contextmanager
def _hydra(folder: Path) -> Iterator[None]:
    """Have Hydra read a folder of YAML inside the block; what it keeps globally is put back."""
    hydra, chosen = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(folder.resolve()), version_base="1.3"):
            yield
    finally:
        GlobalHydra.instance().hydra, HydraConfig.instance().cfg = hydra, chosen


def override(key: str, value: object) -> str:
    """Return a setting as an override in Hydra's grammar.

    >>> override("seed", 1), override("task", ["sst2", "rte"]), override("cache", "my files")
    ('seed=1', "task=['sst2','rte']", "cache='my files'")

    Raises:
        UserError: the value is no text, number, truth value, None or list of such.
    """
    return f"{key}={_in_grammar(key, value)}"


def _in_grammar(key: str, value: object) -> str:
    """Return a value in Hydra's grammar."""
    if value is None:
        return "null"
    if isinstance(value, str | Path):
        return QuotedString(str(value), Quote.single).with_quotes()
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(_in_grammar(key, item) for item in value)}]"
    raise UserError(f"{key}={value!r} is no text, number or list; use overrides=['{key}.NAME=...']")


def searched_too(folder: Path) -> str:
    """Return the override that makes Hydra search one more folder of YAML files.

    Raises:
        UserError: there is no such folder.
    """
    path = folder.expanduser()
    require(path.is_dir(), f"--config-dir {folder}: no such folder")
    return override("hydra.searchpath", [f"file://{path.resolve()}"])


def compose_run(folder: Path, overrides: Sequence[str]) -> tuple[RunConfig, Path]:
    """Compose one run from a folder of YAML and overrides; return it and its run folder.

    Raises:
        UserError: an unknown name, option or value, with the valid choices.
    """
    with _hydra(folder), complaints():
        composed = compose(CONFIG_NAME, list(overrides), return_hydra_config=True)
        HydraConfig.instance().set_config(composed)
        run_folder = Path(composed.hydra.run.dir)
    OmegaConf.set_struct(composed, False)  # noqa: FBT003 - omegaconf's signature
    composed.pop("hydra")
    _refuse_additions(composed)
    return to_objects(composed), run_folder


def _refuse_additions(node: DictConfig, path: str = "") -> None:
    """Raise UserError for settings that no dataclass knows: ``+name=value`` can bring them in."""
    schema = OmegaConf.get_type(node)
    known = [f"{path}{f.name}" for f in fields(schema)] if is_dataclass(schema) else None
    for key in node:
        name = f"{path}{key}"
        if known is not None and name not in known:
            raise unknown("setting", name, known)
        if not OmegaConf.is_missing(node, key) and isinstance(node[key], DictConfig):
            _refuse_additions(node[key], f"{name}.")


def preset_sweeps(folder: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings that the composition itself sweeps (a preset's), with their values."""
    with _hydra(folder), complaints():
        composed = compose(CONFIG_NAME, list(overrides), return_hydra_config=True)
    return dict(composed.hydra.sweeper.params or {})


def _members(group: str) -> list[str]:
    """Return the choices of a group: in the store, and in the folders of the last composition."""
    loader = GlobalHydra.instance().config_loader()
    return sorted(loader.get_group_options(group))


@contextmanager
def complaints() -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise into one `UserError` with the nearest valid choice."""
    try:
        yield
    except MissingConfigException as error:
        group, _, name = (error.missing_cfg_file or "").rstrip("/").rpartition("/")
        if not group:
            raise unknown(name, "", _members(name)) from error
        raise not_a_member(group, name, _members(group)) from error
    except OverrideParseException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"cannot read {error.override!r} on the command line: {reason}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"a YAML file cannot be read: {' '.join(str(error).split())}") from error
    except (HydraException, OmegaConfBaseException) as error:
        cause: Any = error
        while cause is not None and not isinstance(cause, OmegaConfBaseException):
            cause = cause.__cause__
        raise _setting_error(error, cause) from error


def _setting_error(error: Exception, cause: OmegaConfBaseException | None) -> UserError:
    """Name the setting that is wrong, and its siblings if there is no such setting."""
    parent = getattr(cause, "parent_node", None)
    schema = OmegaConf.get_type(parent) if parent is not None else None
    key = getattr(cause, "full_key", None)
    is_unknown = schema is not None and is_dataclass(schema) and key is not None
    names = [f.name for f in fields(schema)] if is_unknown and schema is not None else []
    last = str(key).rpartition(".")[2]
    if is_unknown and last not in names:
        return unknown(
            "setting", key, [f"{str(key).rpartition('.')[0]}.{n}".strip(".") for n in names]
        )
    first_line = str(cause or error).strip().splitlines()[0]
    return UserError(f"{key}: {first_line}" if key else " ".join(str(error).split()))
