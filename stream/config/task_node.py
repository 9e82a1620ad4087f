"""A task among the settings that Hydra composes, of which OmegaConf makes nodes when it is asked.

A stream may have thousands of tasks, whose fields hardly anything looks at one by one. A file that
is plainly the description of its task is kept as it was read, and becomes the typed object at once
(`stream.config.plain`). Whatever looks into the node, such as an override of a field, an
interpolation, or ``--cfg job``, finds the nodes that OmegaConf makes of the file.
"""

import copy
import os
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import yaml
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.base import ContainerMetadata

from stream.config.plain import NotPlainError, Part, part
from stream.config.task import TaskSpec

GROUP = "task"


class _Nodes(dict[str, Any]):
    """The nodes of a task, which are made when something asks for one."""

    make: Callable[[], dict[str, Any]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (), None, None, iter(list(self.items()))


def _after_making(name: str) -> Callable[..., Any]:
    """Return a method of dict that has the nodes made first."""
    method = getattr(dict, name)

    def asked(self: _Nodes, *arguments: Any) -> Any:
        make, self.make = self.make, None
        if make is not None:
            self.update(make())
        return method(self, *arguments)

    return asked


for _name in ("__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__len__"):
    setattr(_Nodes, _name, _after_making(_name))
for _name in ("__repr__", "__eq__", "get", "keys", "values", "items"):
    setattr(_Nodes, _name, _after_making(_name))


class _File:
    """The settings in a task's file; copies of the node share it."""

    def __init__(self, values: dict[str, Any]):
        self.values = values
        self.part: Part | None
        try:
            self.part = part(TaskSpec, values)
        except NotPlainError:
            self.part = None

    def merged(self) -> DictConfig:
        """Return the settings as OmegaConf has them. Raises what OmegaConf raises."""
        merged = OmegaConf.merge(task_schema(), self.values)
        assert isinstance(merged, DictConfig)
        return merged

    @cached_property
    def spec(self) -> TaskSpec:
        """The typed object, if the file has a part. Raises UserError for values that it refuses."""
        assert self.part is not None
        return self.part.made()


@cache
def task_schema() -> DictConfig:
    """Return the form of a task; making it takes as long as filling it."""
    return OmegaConf.structured(TaskSpec)


class TaskNode(DictConfig):
    """The settings of one task."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> "TaskNode":
        """Return the node of what a task's file says.

        Raises:
            OmegaConfBaseException: something that no task has.
        """
        file = _File(values)
        if file.part is None:
            file.merged()
        return cls._holding(file)

    @classmethod
    def _holding(cls, file: _File) -> "TaskNode":
        node = cls(None)
        own: dict[str, Any] = vars(node)
        own["_metadata"] = ContainerMetadata(
            ref_type=TaskSpec,
            object_type=TaskSpec,
            optional=False,
            key=None,
            key_type=Any,
            element_type=Any,
        )
        own["_file"], own["_content"] = file, _Nodes()
        own["_content"].make = node._nodes
        return node

    def _nodes(self) -> dict[str, Any]:
        """Return the nodes of all settings, as children of this one."""
        made: dict[str, Any] = self.__dict__["_file"].merged().__dict__["_content"]
        for node in made.values():
            node._set_parent(self)
        return made

    @property
    def is_unread(self) -> bool:
        """Whether nothing has looked into it, so that it says what the file says."""
        return getattr(self.__dict__["_content"], "make", None) is not None

    def _to_object(self) -> Any:
        """Return the typed object. Raises UserError for values that it refuses."""
        if self.is_unread and self.__dict__["_file"].part is not None:
            return self.__dict__["_file"].spec
        return super()._to_object()

    def __deepcopy__(self, memo: dict[int, Any]) -> DictConfig:
        if not self.is_unread:
            return super().__deepcopy__(memo)
        copied = TaskNode._holding(self.__dict__["_file"])
        own: dict[str, Any] = vars(copied)
        own["_metadata"], own["_parent"] = copy.deepcopy(self._metadata), self.__dict__["_parent"]
        return copied

    def _re_parent(self) -> None:
        if not self.is_unread:
            super()._re_parent()

    def _invalidate_flags_cache(self) -> None:
        if self.is_unread:
            vars(self)["_flags_cache"] = None
        else:
            super()._invalidate_flags_cache()


_KNOWN: dict[str, tuple[object, ConfigResult | None]] = {}
"""What each file gave in its present state; of this process, like Hydra's own store."""


def load_task(load: Callable[[str], Any], repository: Any, config_path: str) -> Any:
    """Load a file as Hydra does; that of a task, if it is plain, becomes a `TaskNode`.

    Args:
        load: Hydra's function, which reads each file once.
        repository: Hydra's, whose function that is.
        config_path: the file, such as ``task/sst2``.
    """
    if not config_path.startswith(f"{GROUP}/"):
        return load(config_path)
    key = f"config_path={config_path}"
    if key not in repository.cache:
        source: Any = repository.delegate._find_object_source(config_path, ObjectType.CONFIG)
        is_file = source is not None and source.scheme() == "file"
        found = _read(source, config_path) if is_file else None
        if found is not None:
            repository.cache[key] = found
    return load(config_path)


def _read(source: Any, config_path: str) -> ConfigResult | None:
    """Return what the file of a task gives; None for one that Hydra itself has to read."""
    path = os.path.join(source.path, source._normalize_file_name(config_path))
    try:
        file = os.stat(path)
    except OSError:
        return None
    state = file.st_dev, file.st_ino, file.st_mtime_ns, file.st_size
    if path not in _KNOWN or _KNOWN[path][0] != state:
        _KNOWN[path] = state, _parsed(source, path, config_path.partition("/")[2])
    return copy.copy(_KNOWN[path][1])


def _parsed(source: ConfigSource, path: str, name: str) -> ConfigResult | None:
    """Return what a file gives; None for one that has more than a task's settings, or is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        header = source._get_header_dict(text[:512])
        content = yaml.load(text, Loader=_loader())
        settings = content.get(name) if isinstance(content, dict) else None
        alone = header == {"package": None} and list(content or ()) == [name]
        if not alone or not isinstance(settings, dict) or not settings:
            return None
        config = DictConfig({name: TaskNode.of(settings)})
    except Exception:  # noqa: BLE001 - Hydra reads it again, and says what is wrong
        return None
    found = ConfigResult(source.provider, f"{source.scheme()}://{source.path}", config, header)
    found.defaults_list = []
    return found


@cache
def _loader() -> Any:
    """Return how OmegaConf reads YAML; with libyaml, where it is there, a fifth of the time."""
    of_omegaconf = get_yaml_loader()
    if not yaml.__with_libyaml__:
        return of_omegaconf

    class Loader(yaml.CSafeLoader):
        yaml_implicit_resolvers = of_omegaconf.yaml_implicit_resolvers

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of yaml
            keys = [key.value for key, _ in node.value]
            if len(set(keys)) < len(keys):
                raise ValueError("a key stands twice")
            return super().construct_mapping(node, deep=deep)

    return Loader
