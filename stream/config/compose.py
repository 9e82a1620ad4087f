"""From conf/ and overrides to a typed `RunConfig`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from stream.config.complaints import complaints
from stream.config.composition import with_tasks
from stream.config.interpolation import escaped, uninterpolated
from stream.config.loader import SEARCHED
from stream.config.members import unusable
from stream.config.paths import from_home
from stream.config.plain import NotPlainError, part
from stream.config.run import RunConfig
from stream.config.task import TaskSpec
from stream.config.task_node import task_schema
from stream.errors import UserError, first_line, require


def register(groups: Mapping[str, Mapping[str, type]]) -> None:
    """Put the run's schema and each group's dataclasses (learner, data, tracking) in the store.

    A dataclass with a field of a type that a setting cannot have is remembered as unusable. One
    that is in the store stays there: to put all in again takes a third of the time of composing.
    """
    store = ConfigStore.instance()
    if "run_schema.yaml" not in store.repo:
        store.store(name="run_schema", node=RunConfig)
    for group, members in groups.items():
        stored = store.repo.get(group, {})
        for name, schema in members.items():
            known = stored.get(f"{name}.yaml")
            if known is not None and OmegaConf.get_type(known.node) is schema:
                continue
            try:
                store.store(group=group, name=name, node=schema)
            except OmegaConfBaseException as error:
                unusable(group, {name: f"{schema.__module__}: {first_line(error)}"})


def restore(values: Mapping[str, Any], groups: Mapping[str, type]) -> RunConfig:
    """Return the configuration that a run recorded (its ``asdict``).

    Args:
        values: the recorded values; what is missing takes its default.
        groups: the dataclass of each group that was chosen (learner, data, tracking).

    Raises:
        UserError: values that this version does not understand.
    """
    left = {name: value for name, value in values.items() if name != "task"}
    tasks = values.get("task", {})
    require(isinstance(tasks, Mapping), f"task must be tasks by name, got {tasks!r}")
    with suppress(NotPlainError, LookupError):
        return _plainly(left, tasks, groups)
    with complaints():
        schema = OmegaConf.structured(RunConfig)
        for group, chosen in groups.items():
            schema[group] = OmegaConf.structured(chosen)
        merged = OmegaConf.merge(schema, escaped(left))
        specs = {name: _recorded_task(said) for name, said in tasks.items()}
    return with_tasks(cast("DictConfig", merged), specs)


def _plainly(
    left: Mapping[str, Any], tasks: Mapping[str, Any], groups: Mapping[str, type]
) -> RunConfig:
    """Return what `restore` does, where OmegaConf has nothing to look at; a tenth of its time.

    Raises:
        NotPlainError, LookupError: it has.
        UserError: values that a class refuses.
    """
    run = part(RunConfig, left)
    chosen = {group: part(kind, left[group]).new() for group, kind in groups.items()}
    specs = {name: part(TaskSpec, said).made() for name, said in tasks.items()}
    return replace(run, values={**run.values, **chosen, "task": specs}).new()


def _recorded_task(values: Any) -> TaskSpec:
    """Return the task that a run recorded.

    Raises:
        UserError: values that a task refuses.
        OmegaConfBaseException: values that no task has.
    """
    try:
        return part(TaskSpec, values).made()
    except NotPlainError:
        merged = OmegaConf.merge(task_schema(), escaped(values))
        return cast("TaskSpec", OmegaConf.to_object(merged))


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
    if isinstance(value, Path):
        return literal(str(value))
    if isinstance(value, str):
        return QuotedString(value, Quote.single).with_quotes()
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, Integral):  # such as NumPy's
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"[{','.join(_in_grammar(key, item) for item in value)}]"
    raise UserError(f"{key}={value!r} is no text, number or list; use overrides=['{key}.NAME=...']")


def literal(text: str) -> str:
    """Return a text in Hydra's grammar that stands for itself: ``${`` begins nothing."""
    return QuotedString(uninterpolated(text), Quote.single).with_quotes()


def searched_too(folder: Path, others: Sequence[str] = ()) -> str:
    """Return the override that makes Hydra search one more folder of YAML files.

    Args:
        folder: the folder.
        others: what is searched before it, as Hydra writes it (``file://FOLDER``).

    Raises:
        UserError: there is no such folder.
    """
    path = from_home(folder)
    require(path.is_dir(), f"--config-dir {folder}: no such folder")
    return override(SEARCHED, [*others, f"file://{path.resolve()}"])
