"""Hydra's loader of YAML files: here it also checks those of tasks, and composes the same once."""

import copy
import gc
import os
import secrets
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from hydra import version
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

from stream.config.complaints import LACKING_FOLDER, complaints, members
from stream.config.repository import Repository, state_of
from stream.config.stream_files import with_its_tasks
from stream.config.task_files import (
    add_tasks,
    check_task_files,
    check_task_settings,
    read_whole,
    task_nodes,
    tasks_as_one,
    without_tasks,
)
from stream.config.task_node import load_task
from stream.errors import UserError

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
