"""A YAML file that builds on others of its group (its ``defaults``), put together as a run does it.

Other files are read one by one (`stream.config.choices`): to have Hydra look at all takes longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, cast

from hydra.core.default_element import GroupDefault
from hydra.types import RunMode
from omegaconf import OmegaConf

from stream.config.complaints import complaints
from stream.config.compose import override
from stream.config.loader import CONFIG_NAME, reading
from stream.config.paths import conf_folder
from stream.errors import require

SELF, OVERRIDE = "_self_", "override "


@dataclass(frozen=True)
class Whole:
    """What a file says together with those that it builds on.

    Attributes:
        content: its settings.
        choices: what it chooses of other groups.
        schema: the name of the class that it gives values of, such as a learner's; None if of none.
    """

    content: dict[str, Any]
    choices: dict[str, Any]
    schema: str | None


def builds_on(content: Mapping[str, Any]) -> list[Any]:
    """Return what a file's ``defaults`` name beside choices, without the file itself at the end.

    Raises:
        UserError: they are no list of names.
    """
    listed = content.get("defaults") or []
    are_names = isinstance(listed, list) and all(isinstance(entry, str | dict) for entry in listed)
    require(are_names, "its defaults are no list of names")
    first = [next(iter(entry), "") if isinstance(entry, dict) else "" for entry in listed]
    named = [e for e, k in zip(listed, first, strict=True) if not str(k).startswith(OVERRIDE)]
    return named[:-1] if named[-1:] == [SELF] else named


def put_together(group: str, name: str, searched: Sequence[str]) -> Whole:
    """Return a file together with what it builds on.

    Args:
        group: the group of the file, such as ``backbone``.
        name: its name.
        searched: the overrides that make Hydra search more folders.

    Raises:
        UserError: a file that it builds on is not there, or cannot be merged with it.
    """
    asked = [override(group, name), *searched]
    content, schema = OmegaConf.create(), None
    with reading(conf_folder()) as loader, complaints(asked):
        found = loader.compute_defaults_list(CONFIG_NAME, asked, RunMode.RUN)
        repository: Any = loader._parse_overrides_and_create_caching_repo(CONFIG_NAME, asked)[1]
        for default in found.defaults:
            path = str(default.config_path)
            if not path.startswith(f"{group}/") and default.package != group:
                continue
            said = repository.load_config(path).config
            if is_dataclass(OmegaConf.get_type(said)):  # its values are defaults
                content, schema = OmegaConf.create(), path.removeprefix(f"{group}/")
            else:
                content = OmegaConf.merge(content, said)
        listed = repository.load_config(CONFIG_NAME).defaults_list
        settings = cast("dict[str, Any]", OmegaConf.to_container(content, resolve=False))
    always = [d.group for d in listed if isinstance(d, GroupDefault) and d.is_override()]
    chosen = found.overrides.override_choices
    others = {key: value for key, value in chosen.items() if key not in (group, *always)}
    return Whole(settings, others, schema)
