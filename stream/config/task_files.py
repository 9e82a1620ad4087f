"""The YAML file of a task: it describes the task that its name says, and no other."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from hydra.core.default_element import ResultDefault
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from stream.config.task import TaskSpec
from stream.errors import UserError, first_line, require, unknown

GROUP = "task"


def check_task_files(defaults: Sequence[ResultDefault], repository: Any) -> None:
    """Check that the tasks that are asked for are those that their files describe.

    Args:
        defaults: everything that Hydra composes, which tells the tasks that are asked for.
        repository: Hydra's; it reads each file once.

    Raises:
        UserError: a task is asked for twice, or its file describes something else.
    """
    names = [_name(default) for default in _tasks(defaults)]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"a task is learned once; named more than once: {', '.join(twice)}")
    for default in _tasks(defaults):
        name, content, where = _file(default, repository)
        form = f"it must have one key, {name!r}, with the task's settings below it"
        require(isinstance(content, DictConfig), f"{where} is a list; {form}")
        require(len(content) > 0, f"{where} is empty; {form}")
        keys = [str(key) for key in content if key != "defaults"]
        require(keys == [name], f"{where} has {', '.join(map(repr, keys))} at its top; {form}")
        header = repository.load_config(default.config_path).header
        own_place = default.package != GROUP or header.get("package") not in (None, GROUP)
        require(not own_place, f"{where} must not have a line '# @package'")


def tasks_as_one(defaults: Sequence[ResultDefault], repository: Any) -> list[ResultDefault]:
    """Return what is composed, with tasks that follow one another as one file.

    Merging a file goes through all that was merged before, so that takes less time.

    Args:
        defaults: everything that Hydra composes, checked by `check_task_files`.
        repository: Hydra's, which gets the one file.
    """
    found: list[ResultDefault] = []
    for are_tasks, group in groupby(defaults, _is_task):
        several = list(group)
        if are_tasks and len(several) > 1:
            one = replace(several[0], config_path=f"{GROUP}/{'+'.join(map(_name, several))}")
            loaded = copy.copy(repository.load_config(several[0].config_path))
            loaded.config = OmegaConf.create()
            for default in several:
                name, content, _ = _file(default, repository)
                loaded.config[name] = content._get_node(name)
            repository.cache[f"config_path={one.config_path}"] = loaded
            several = [one]
        found += several
    return found


def check_task_settings(defaults: Sequence[ResultDefault], repository: Any) -> None:
    """Check every setting in the files of the tasks.

    Args:
        defaults: everything that Hydra composes.
        repository: Hydra's.

    Raises:
        UserError: a setting that a task does not have, or a value of another kind.
    """
    for default in _tasks(defaults):
        name, content, where = _file(default, repository)
        settings = content._get_node(name)
        is_mapping = isinstance(settings, DictConfig) and len(settings) > 0
        require(is_mapping, f"{where} has no settings below {name!r}, such as {name}.title")
        try:
            OmegaConf.merge(OmegaConf.structured(TaskSpec), settings)
        except OmegaConfBaseException as error:
            raise _wrong(where, error) from error


def _tasks(defaults: Sequence[ResultDefault]) -> Iterator[ResultDefault]:
    """Yield the tasks among everything that is composed."""
    return filter(_is_task, defaults)


def _is_task(default: ResultDefault) -> bool:
    return (default.config_path or "").startswith(f"{GROUP}/")


def _name(default: ResultDefault) -> str:
    """Return a task's name."""
    return str(default.config_path).partition("/")[2]


def _file(default: ResultDefault, repository: Any) -> tuple[str, Any, str]:
    """Return a task's name, the content of its file, and where that is."""
    loaded = repository.load_config(default.config_path)
    folder = str(loaded.path).removeprefix("file://")
    name = _name(default)
    return name, loaded.config, f"{folder}/{default.config_path}.yaml"


def _wrong(where: str, error: OmegaConfBaseException) -> UserError:
    """Name the setting in a task's file that is wrong."""
    key, parent = str(error.full_key or ""), error.parent_node
    valid = [str(name) for name in parent] if isinstance(parent, DictConfig) else []
    if valid and key and key.rpartition(".")[2] not in valid:
        return UserError(f"{where}: {unknown('setting', key, valid)}")
    return UserError(f"{where}: {f'{key}: ' if key else ''}{first_line(error)}")
