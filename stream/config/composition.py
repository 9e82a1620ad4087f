"""What Hydra composes of YAML files and overrides, and the typed objects that it stands for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from hydra import compose
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from stream.config.complaints import complaints
from stream.config.loader import CONFIG_NAME, reading
from stream.config.names import chosen_in, unknown_setting
from stream.config.run import RunConfig
from stream.config.task import TaskSpec
from stream.config.task_node import TaskNode
from stream.errors import NeededError, UserError, first_line, require


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
