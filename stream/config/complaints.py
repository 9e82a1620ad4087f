"""What Hydra and OmegaConf complain about, in one line that names the nearest valid choice."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import BooleanNode, DictConfig, OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    OmegaConfBaseException,
    ValidationError,
)
from yaml import YAMLError

from stream.config.members import not_a_member
from stream.config.names import chosen_in, unknown_setting
from stream.config.wording import in_plain_words
from stream.errors import UserError, first_line, one_line, unknown

LACKING_FOLDER = r"provider=hydra\.searchpath .*path=(.*) is not available"
"""Hydra's warning of a folder that is not there, which is an error here."""
IN_FILE = re.compile(r"In '([^']+)': \w+ raised while composing config")
"""Hydra's word for a file that does not fit what it is merged with."""
INTERNAL = ("_dummy_empty_config_", "run_schema")
"""What is in Hydra's store beside what a person may choose."""
EXTRAS = {
    ("hydra/sweeper", "optuna"): "optuna",
    ("hydra/launcher", "joblib"): "sweep",
    ("hydra/launcher", "ray"): "ray",
    ("hydra/launcher", "submitit_local"): "slurm",
    ("hydra/launcher", "submitit_slurm"): "slurm",
}
"""The choices that an optional package brings, and the extra of this package that installs it."""
RETIRED = {"backbone_schema": "a backbone's YAML needs no defaults any more; remove that list"}
"""What YAML files of earlier versions named, and what to do."""
TRUTH: dict[str, bool] = {
    **dict.fromkeys(("true", "yes", "y", "on"), True),
    **dict.fromkeys(("false", "no", "n", "off"), False),
}
"""The texts that are truth values."""


@contextmanager
def complaints(overrides: Sequence[str] = ()) -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise into one `UserError` with the nearest valid choice.

    Inside the block they also complain about a number where a truth value is meant.

    Args:
        overrides: what is composed in the block, to name the one that is wrong.
    """
    try:
        with _numbers_are_no_truth_values():
            yield
    except MissingConfigException as error:
        raise _no_such_choice(error, overrides) from error
    except UserWarning as error:
        lacking = re.match(LACKING_FOLDER, str(error))
        if lacking is None:
            raise
        raise UserError(f"hydra.searchpath: no such folder: {lacking[1]}") from error
    except OverrideParseException as error:
        reason = first_line(error)
        raise UserError(f"cannot read {error.override!r} on the command line: {reason}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"a YAML file cannot be read: {one_line(error)}") from error
    except (HydraException, OmegaConfBaseException) as error:
        cause: Any = error
        while cause is not None and not isinstance(cause, OmegaConfBaseException):
            cause = cause.__cause__ or cause.__context__
        file = IN_FILE.match(str(error))
        where = "" if file is None else f"{file[1]}.yaml: "
        raise UserError(f"{where}{_setting_error(error, cause, overrides)}") from error


@contextmanager
def _numbers_are_no_truth_values() -> Iterator[None]:
    """Have OmegaConf refuse numbers as truth values in the block; it takes each but 0 for true.

    All settings are read by it, from wherever they come, so that this is the one place.
    """
    nodes: Any = BooleanNode
    before, nodes._validate_and_convert_impl = nodes._validate_and_convert_impl, _truth_value
    try:
        yield
    finally:
        nodes._validate_and_convert_impl = before


def _truth_value(node: BooleanNode, value: object) -> bool:
    """Return the truth value that a value of a setting stands for.

    Raises:
        ValidationError: it stands for none.
    """
    del node
    found = value if isinstance(value, bool) else TRUTH.get(str(value).lower())
    if found is None:
        raise ValidationError("must be true or false, got $VALUE")
    return found


def _no_such_choice(error: MissingConfigException, overrides: Sequence[str]) -> UserError:
    """Name the choices of a group, or the files that say what is composed."""
    group, _, name = (error.missing_cfg_file or "").rpartition("/")
    if name in RETIRED and f"{group}={name}" not in overrides:
        return UserError(f"{group} names {name!r}: {RETIRED[name]}")
    if (group, name) in EXTRAS:
        extra = EXTRAS[group, name]
        return UserError(f"{group}={name} is not installed: pip install '.[{extra}]' in the clone")
    if group:
        return not_a_member(group, name, members(group))
    return unknown("--config-name", name, [own for own in members("") if own not in INTERNAL])


def members(group: str) -> list[str]:
    """Return the choices of a group: in the store, and in the folders of the last composition."""
    hydra = GlobalHydra.instance()
    return sorted(hydra.config_loader().get_group_options(group)) if hydra.is_initialized() else []


def _setting_error(
    error: Exception, cause: OmegaConfBaseException | None, overrides: Sequence[str]
) -> UserError:
    """Name the setting that is wrong, and its siblings if there is no such setting."""
    parent, key = getattr(cause, "parent_node", None), getattr(cause, "full_key", None)
    if not key or cause is None:
        return UserError(one_line(error) if cause is None else in_plain_words(cause))
    schema = OmegaConf.get_type(parent) if parent is not None else None
    path, _, last = str(key).rpartition(".")
    if schema is not None and is_dataclass(schema) and parent is not None:
        siblings = [f"{path}.{field.name}".strip(".") for field in fields(schema)]
        if last not in (field.name for field in fields(schema)):
            root = parent._get_root()
            return unknown_setting(_as_given(key, overrides), siblings, chosen_in(root))
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and isinstance(parent, DictConfig):
        return _no_key(str(key), path, parent)
    return UserError(f"{key}: {in_plain_words(cause)}")


def _no_key(key: str, path: str, parent: DictConfig) -> UserError:
    """Return the error for a key that a dict of the settings lacks, such as a task."""
    if path == "task":
        return unknown("task of this run", key.removeprefix("task."), map(str, parent))
    error = unknown("setting", key, [f"{path}.{name}" for name in parent])
    return UserError(f"{error}; +{key}=VALUE adds one")


def _as_given(key: str, overrides: Sequence[str]) -> str:
    """Return the whole name that was given where only its beginning was looked at."""
    names = (text.lstrip("+~").partition("=")[0] for text in overrides)
    return next((name for name in names if name.startswith(f"{key}.")), key)
