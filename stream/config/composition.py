"""What Hydra composes of YAML files and overrides, and the typed objects that it stands for."""

import copy
import gc
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, cast

from hydra import compose, version
from hydra._internal import hydra as internal
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.default_element import ResultDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from stream.config.complaints import LACKING_FOLDER, complaints, members
from stream.config.names import chosen_in, unknown_setting
from stream.config.repository import Repository, state_of
from stream.config.run import RunConfig
from stream.config.stream_files import with_its_tasks
from stream.config.task import TaskSpec
from stream.config.task_files import (
    add_tasks,
    check_task_files,
    check_task_settings,
    read_whole,
    task_nodes,
    tasks_as_one,
    without_tasks,
)
from stream.config.task_node import TaskNode, load_task
from stream.errors import NeededError, UserError, first_line, require

CONFIG_NAME, VERSION_BASE = "config", "1.3"
RUN_MODE = "hydra.mode=RUN"
"""What Hydra adds to the overrides of a run that is no sweep."""
SEARCHED = "hydra.searchpath"
"""The setting that names more folders of YAML files."""

# Workers of a parallel sweep get both by importing this module. Their answers are cached in the
# configuration, and Hydra hands that cache to every job: one token, one folder a sweep.
OmegaConf.register_new_resolver("token", lambda: secrets.token_hex(2), use_cache=True, replace=True)
OmegaConf.register_new_resolver(
    "sweep_folder",
    lambda name, otherwise: otherwise if name is None else f"runs/sweeps/{name}",
    use_cache=True,
    replace=True,
)


def to_objects(composed: DictConfig) -> RunConfig:
    """Return the typed objects of a composed configuration.

    Raises:
        UserError: a value that the dataclass refuses, or a missing one (`NeededError`).
    """
    with _objects_from_it():
        return cast("RunConfig", OmegaConf.to_object(composed))


def with_tasks(settings: DictConfig, tasks: Mapping[str, TaskSpec], **parts: Any) -> RunConfig:
    """Return the typed objects of settings, with tasks that are objects already.

    Args:
        settings: all but the tasks.
        tasks: by name.
        parts: taken instead of those of the settings.

    Raises:
        UserError: a value that its dataclass refuses, or a missing one.
    """
    left = [str(key) for key in settings if key not in ("task", *parts)]
    with _objects_from_it():
        made = {key: _object(settings, key) for key in left}
    return RunConfig(**made, **parts, task=dict(tasks))


@contextmanager
def _objects_from_it() -> Iterator[None]:
    """Turn what OmegaConf raises in the block, which makes objects, into a `UserError`."""
    try:
        yield
    except MissingMandatoryValue as error:
        key = str(error.full_key)
        if key.startswith("task."):
            _, task, setting = key.split(".", 2)
            raise NeededError(f"task {task!r} needs {setting}: write it in its YAML") from error
        raise NeededError(f"{key} is needed: give {key}=VALUE") from error
    except OmegaConfBaseException as error:
        name = f"{error.full_key}: " if error.full_key else ""
        raise UserError(f"{name}{first_line(error)}") from error


class _Loader(ConfigLoaderImpl):
    """Hydra's loader, which also holds the files of tasks to their form.

    A run is composed twice, to check it and by Hydra, and a sweep more often. What the same files
    give is put together once; that takes most of the time where there are many tasks.
    """

    _last: ClassVar[tuple[object, DictConfig] | None] = None
    """What was put together last, and from what; of this process, like Hydra's own store."""
    _mode: ClassVar[tuple[object, Any] | None] = None
    """What was composed last, and the mode that it says."""
    _first: ClassVar[tuple[object, DictConfig] | None] = None
    """Inside `composed_once`: what was composed first, and from what."""
    _keeps_first: ClassVar[bool] = False

    def __init__(self, config_search_path: ConfigSearchPath):
        super().__init__(config_search_path)
        self.repository = Repository(config_search_path)

    def load_configuration(self, *arguments: Any, **named: Any) -> DictConfig:
        """Compose; nothing of what is made is garbage, so that none is looked for meanwhile.

        Hydra asks for the mode alone before it composes a run. What a check of the same settings
        has just composed says it too.
        """
        asked = *arguments, named.get("config_name"), tuple(named.get("overrides", ()))
        for_mode = not named.get("validate_sweep_overrides", True)
        if for_mode and _Loader._mode is not None and _Loader._mode[0] == asked:
            return OmegaConf.create({"hydra": {"mode": _Loader._mode[1]}})
        whole = asked, named.get("run_mode"), self._searched()
        handed = self._handed(*whole)
        if handed is not None:
            return handed
        collects = gc.isenabled()
        gc.disable()
        try:
            composed = super().load_configuration(*arguments, **named)
        finally:
            if collects:
                gc.enable()
        _Loader._mode = asked, composed.hydra.mode
        if _Loader._keeps_first:
            _Loader._first, _Loader._keeps_first = (whole, copy.deepcopy(composed)), False
        return composed

    def _handed(self, asked: tuple[Any, ...], *others: Any) -> DictConfig | None:
        """Return what was composed first, if it is asked for again, with the mode of a run."""
        *before, overrides = asked
        if _Loader._first is None or overrides[-1:] != (RUN_MODE,):
            return None
        whole, composed = _Loader._first
        if whole != ((*before, overrides[:-1]), *others):
            return None
        _Loader._first = None
        composed.hydra.mode = RunMode.RUN
        composed.hydra.overrides.hydra.append(RUN_MODE)
        return composed

    def _searched(self) -> list[str]:
        """Return where files are looked for, whatever links lead there."""
        paths = (str(found.path) for found in self.config_search_path.get_path())
        return [os.path.realpath(path.removeprefix("file://")) for path in paths]

    def _parse_overrides_and_create_caching_repo(
        self, config_name: str | None, overrides: list[str]
    ) -> tuple[list[Override], Any]:
        """Return what Hydra reads files with; the file of a stream brings those of its tasks."""
        parsed, made = super()._parse_overrides_and_create_caching_repo(config_name, overrides)
        repo: Any = made
        read = repo.load_config
        repo.load_whole = partial(with_its_tasks, read)
        repo.load_config = partial(with_its_tasks, partial(load_task, read, repo))
        return parsed, repo

    def _compose_config_from_defaults_list(
        self, defaults: list[ResultDefault], repo: Any
    ) -> DictConfig:
        check_task_files(defaults, repo)
        basis = _basis(defaults, repo)
        if basis is None or _Loader._last is None or _Loader._last[0] != basis:
            _Loader._last = basis, self._put_together(defaults, repo)
        return copy.deepcopy(_Loader._last[1])

    def _put_together(self, defaults: list[ResultDefault], repo: Any) -> DictConfig:
        """Merge files; where one cannot be, say which.

        Tasks of which no other file says anything are put in as they are.
        """
        put_together = super()._compose_config_from_defaults_list
        tasks = task_nodes(defaults, repo)
        if tasks:
            composed = put_together(without_tasks(defaults), repo)
            if add_tasks(composed, tasks):
                return composed
        read_whole(defaults, repo)
        try:
            return put_together(tasks_as_one(defaults, repo), repo)
        except HydraException:
            check_task_settings(defaults, repo)  # what it says is clearer, if it is a task
        return put_together(defaults, repo)


def _basis(defaults: list[ResultDefault], repo: Any) -> object:
    """Return what decides what the files of a composition give, before any override of a value.

    The files with the time of their last change, and the dataclasses in Hydra's store. None where
    that cannot be said.
    """
    found = []
    for default in defaults:
        loaded = repo.load_config(default.config_path)
        kind, _, folder = str(loaded.path).partition("://")
        state: object = OmegaConf.get_type(loaded.config)
        if kind == "file":
            state = state_of(f"{folder}/{default.config_path}.yaml")
            if state is None:
                return None
        found.append((default.config_path, default.package, default.primary, state))
    return found


@contextmanager
def hydra_composes_alike() -> Iterator[None]:
    """Have what Hydra starts inside the block compose as `Composition` does."""
    used: Any = internal
    before, used.ConfigLoaderImpl = used.ConfigLoaderImpl, _Loader
    try:
        yield
    finally:
        used.ConfigLoaderImpl = before


@contextmanager
def composed_once() -> Iterator[None]:
    """Have Hydra take what is composed first inside the block, when it composes the same.

    That is for a run that is checked, and then run by Hydra, within moments.
    """
    _Loader._keeps_first = True
    try:
        yield
    finally:
        _Loader._first, _Loader._keeps_first = None, False


@contextmanager
def reading(folder: Path) -> Iterator[ConfigLoaderImpl]:
    """Have Hydra read a folder of YAML inside the block; what it keeps globally is put back.

    Raises:
        UserError: files build on each other in a circle.
    """
    hydra, chosen = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    GlobalHydra.instance().clear()
    version.setbase(VERSION_BASE)
    loader = _Loader(create_config_search_path(str(folder.resolve())))
    try:
        GlobalHydra.instance().initialize(Hydra("run_stream", loader))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", LACKING_FOLDER)
            yield loader
    except RecursionError as error:
        raise UserError("YAML files build on each other in a circle (their defaults)") from error
    finally:
        GlobalHydra.instance().hydra, HydraConfig.instance().cfg = hydra, chosen


@contextmanager
def repository(folder: Path, config_name: str, overrides: Sequence[str]) -> Iterator[Any]:
    """Have what Hydra knows of files and groups inside the block; nothing is composed.

    Args:
        folder: the YAML files.
        config_name: the file that says what is composed.
        overrides: settings; `SEARCHED` among them adds more folders.

    Raises:
        UserError: a file or folder that is not there, or cannot be read.
    """
    added = [text for text in overrides if text.startswith(f"{SEARCHED}=")]
    with reading(folder) as loader, complaints():
        yield loader._parse_overrides_and_create_caching_repo(config_name, added)[1]


def choices_of(folder: Path, group: str, overrides: Sequence[str]) -> list[str]:
    """Return the choices of a group.

    Args:
        folder: the YAML files.
        group: the group, such as ``learner``.
        overrides: settings; `SEARCHED` among them adds more folders.
    """
    with repository(folder, CONFIG_NAME, overrides):
        return members(group)


@dataclass(frozen=True)
class Composition:
    """What Hydra composed of YAML files and overrides.

    Attributes:
        settings: the settings of a run.
        hydra: Hydra's own.
        run_folder: where one run goes.
    """

    settings: DictConfig
    hydra: DictConfig
    run_folder: Path

    @classmethod
    def of(
        cls, folder: Path, overrides: Sequence[str], config_name: str = CONFIG_NAME
    ) -> "Composition":
        """Compose a folder of YAML and overrides.

        Args:
            folder: the YAML files.
            overrides: settings in Hydra's grammar, without sweeps.
            config_name: the file that says what is composed.

        Raises:
            UserError: an unknown name, option or value, with the valid choices.
        """
        with reading(folder), complaints(overrides):
            composed = compose(config_name, list(overrides), return_hydra_config=True)
            HydraConfig.instance().set_config(composed)
            run_folder = Path(composed.hydra.run.dir)
        OmegaConf.set_struct(composed, False)  # noqa: FBT003 - omegaconf's signature
        hydra = composed.pop("hydra")
        OmegaConf.set_struct(composed, True)  # noqa: FBT003
        with complaints(overrides):
            _refuse_additions(composed)
        return cls(composed, hydra, run_folder)

    @property
    def sweeps(self) -> dict[str, Any]:
        """The settings that are swept by the composition itself (by a preset), with the values."""
        return dict(self.hydra.sweeper.get("params") or {})

    def choice(self, group: str) -> Any:
        """Return what was chosen of a group; None where nothing was."""
        return self.hydra.runtime.choices.get(group)

    def run_config(self) -> RunConfig:
        """Return the typed objects.

        Raises:
            UserError: a value that its dataclass refuses, or a missing one.
        """
        self._refuse_lost_stream()
        return to_objects(self.settings)

    def _refuse_lost_stream(self) -> None:
        """Raise UserError if a stream was asked for, and something else chose the tasks."""
        asked = [text for text in self.hydra.overrides.task if text.startswith("stream=")]
        require(
            not asked or list(self.settings.task) == list(self.settings.stream.tasks),
            f"{asked and asked[-1]} has no effect: 'task=[...]' or the experiment chose other tasks"
            "; give one of them",
        )

    def with_values(self, values: Sequence[Override], like: RunConfig | None = None) -> RunConfig:
        """Return the typed objects after some settings got other values.

        That takes a thousandth of the time of composing again, and refuses the same. The settings
        keep their values: give the same settings in every call.

        Args:
            values: what changes; settings within tasks are not among them.
            like: a run with the same tasks, whose objects are taken; None makes them.

        Raises:
            UserError: a value that its dataclass refuses, or a missing one.
        """
        with complaints([str(value.input_line) for value in values]):
            ConfigLoaderImpl._apply_overrides_to_config(list(values), self.settings)
        with _objects_from_it():
            tasks = self._tasks if like is None else like.task
        if like is not None:
            return with_tasks(self.settings, tasks, stream=like.stream)
        self._refuse_lost_stream()
        return with_tasks(self.settings, tasks)

    @cached_property
    def _tasks(self) -> dict[str, TaskSpec]:
        """The objects of the tasks."""
        return cast("dict[str, TaskSpec]", OmegaConf.to_object(self.settings.task))


def _object(settings: DictConfig, key: str) -> Any:
    """Return one part of the settings as the typed object or value that it stands for."""
    if OmegaConf.is_missing(settings, key):
        raise MissingMandatoryValue(f"Missing mandatory value: {key}")
    value = settings[key]
    return OmegaConf.to_object(value) if OmegaConf.is_config(value) else value


def _refuse_additions(node: DictConfig, path: str = "") -> None:
    """Raise UserError for settings that no dataclass knows: ``+name=value`` can bring them in."""
    if isinstance(node, TaskNode) and node.is_unread:
        return  # it is what its file says, which was checked
    schema = OmegaConf.get_type(node)
    known = [f"{path}{f.name}" for f in fields(schema)] if is_dataclass(schema) else None
    for key in node:
        name = f"{path}{key}"
        if known is not None and name not in known:
            raise unknown_setting(name, known, chosen_in(node._get_root()))
        if not OmegaConf.is_missing(node, key) and isinstance(node[key], DictConfig):
            _refuse_additions(node[key], f"{name}.")
