"""The YAML file of a task: it describes the task that its name says, and no other."""

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from hydra.core.default_element import ResultDefault
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from stream.config.task import TaskSpec
from stream.config.task_node import GROUP, TaskNode
from stream.config.wording import in_plain_words, misplaced
from stream.errors import UserError, require, unknown


def check_task_files(defaults: Sequence[ResultDefault], repository: Any) -> None:
    """Check that the tasks that are asked for are those that their files describe.

    Args:
        defaults: everything that Hydra composes, which tells the tasks that are asked for.
        repository: Hydra's; it reads each file once.

    Raises:
        UserError: a task is asked for twice, or its file describes something else.
    """
    names = Counter(_name(default) for default in _tasks(defaults))
    twice = sorted(name for name, times in names.items() if times > 1)
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


def task_nodes(defaults: Sequence[ResultDefault], repository: Any) -> dict[str, TaskNode]:
    """Return the tasks by name, in order; nothing if one of their files is more than its task.

    Args:
        defaults: everything that Hydra composes, checked by `check_task_files`.
        repository: Hydra's.
    """
    found = {}
    for default in _tasks(defaults):
        name, content, _ = _file(default, repository)
        node = content._get_node(name)
        if not isinstance(node, TaskNode):
            return {}
        found[name] = node
    return found


def without_tasks(defaults: Sequence[ResultDefault]) -> list[ResultDefault]:
    """Return what is composed besides the tasks."""
    return [default for default in defaults if not _is_task(default)]


def add_tasks(composed: DictConfig, tasks: Mapping[str, TaskNode]) -> bool:
    """Put tasks into what was composed without them.

    Returns:
        Whether that could be; not so where another file says something of a task.
    """
    place: Any = composed._get_node(GROUP)
    is_free = isinstance(place, DictConfig) and not place._is_none() and not place._is_missing()
    if not is_free or len(place) or place._metadata.element_type is not TaskSpec:
        return False
    for name, node in tasks.items():
        place[name] = node
    return True


def read_whole(defaults: Sequence[ResultDefault], repository: Any) -> None:
    """Have the files of the tasks read by Hydra itself, to be merged with others.

    Args:
        defaults: everything that Hydra composes.
        repository: Hydra's.
    """
    for default in _tasks(defaults):
        repository.cache.pop(f"config_path={default.config_path}", None)
    repository.load_config = repository.load_whole


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
        form = OmegaConf.structured(TaskSpec)
        wrong = misplaced(form, settings)
        require(wrong is None, f"{where}: {wrong}")
        try:
            OmegaConf.merge(form, settings)
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
    return UserError(f"{where}: {f'{key}: ' if key else ''}{in_plain_words(error)}")
