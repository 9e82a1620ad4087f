"""The YAML file of a stream: it names its tasks once, and Hydra composes their files too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hydra.core.default_element import ConfigDefault, GroupDefault
from omegaconf import OmegaConf, open_dict

from stream.config.data import StreamConfig
from stream.config.wording import misplaced
from stream.errors import require

GROUP = "stream"
TASKS = "/task"
WHOLE = "_global_"
"""The package of a file that says more than what a stream is, with the stream below ``stream``."""


def with_its_tasks(load: Callable[[str], Any], config_path: str) -> Any:
    """Load a file as Hydra does; that of a stream then asks for the files of its tasks.

    A file whose own list of defaults has tasks stays as it is.

    Args:
        load: Hydra's function, which reads each file once.
        config_path: the file, such as ``stream/glue9``.

    Raises:
        UserError: a stream without tasks, or one that builds on another.
    """
    loaded = load(config_path)
    if loaded is None or not config_path.startswith(f"{GROUP}/"):
        return loaded
    defaults = loaded.defaults_list
    if any(isinstance(d, GroupDefault) and str(d.group).strip("/") == "task" for d in defaults):
        return loaded
    others = [d for d in defaults if isinstance(d, ConfigDefault) and not d.is_self()]
    refuse_bases(config_path, [str(default.path) for default in others])
    content: Any = loaded.config
    if loaded.header.get("package") == WHOLE:
        content = content.get(GROUP)
    tasks = tasks_of(config_path, OmegaConf.to_container(content) if content else {})
    wrong = misplaced(OmegaConf.structured(StreamConfig), content)
    require(wrong is None, f"{config_path}.yaml: {wrong}")
    with open_dict(content):
        content.tasks = tasks
        content.setdefault("name", config_path.rpartition("/")[2])
    defaults.append(GroupDefault(group=TASKS, value=tasks, package=f"{WHOLE}.task"))
    if not any(isinstance(d, ConfigDefault) and d.is_self() for d in defaults):
        defaults.append(ConfigDefault(path="_self_"))
    return loaded


def refuse_bases(where: str, bases: Sequence[str]) -> None:
    """Raise UserError if the file ``where`` builds on other streams, whose tasks would be added."""
    named = ", ".join(bases)
    told = f"{where}.yaml: a stream names all of its tasks and builds on no other (defaults: "
    require(not bases, f"{told}{named})")


def tasks_of(where: str, content: Any) -> list[str]:
    """Return the names of a stream's tasks: those of its first order, if it lists no others.

    Args:
        where: the file, for messages.
        content: what it says of the stream.

    Raises:
        UserError: there are none, or they are no names.
    """
    is_mapping = isinstance(content, Mapping)
    orders = content.get("orders") if is_mapping else None
    first = next(iter(orders.values()), None) if isinstance(orders, Mapping) else None
    tasks = (content.get("tasks") if is_mapping else None) or first
    are_names = isinstance(tasks, list) and all(isinstance(name, str) for name in tasks)
    require(are_names and bool(tasks), f"{where}.yaml: tasks must be a list of names of tasks")
    return list(tasks or ())
