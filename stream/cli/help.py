"""What ``task-stream run --help`` prints: the text of conf/config.yaml, with the choices there are.

Hydra would compose a whole run to print it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from hydra.core.object_type import ObjectType
from omegaconf import OmegaConf

from stream.config.loader import repository

CHOICES = "APP_CONFIG_GROUPS"


def help_text(folder: Path, config_name: str, overrides: Sequence[str]) -> str | None:
    """Return the help; None where it shows more than the choices, which only Hydra knows.

    Args:
        folder: the YAML files.
        config_name: the file that says what is composed.
        overrides: settings; what adds folders among them counts.

    Raises:
        UserError: a file that is not there or cannot be read.
    """
    with repository(folder, config_name, overrides) as found:
        loaded = found.load_config(config_name)
        text = loaded and OmegaConf.select(loaded.config, "hydra.help.template")
        if text is None or Template(text).get_identifiers() != [CHOICES]:
            return None
        return Template(text).substitute({CHOICES: "\n".join([*_choices(found), ""])})


def _choices(found: Any, parent: str = "") -> Iterator[str]:
    """Yield a line for each group of the program's own, in order."""
    for name in sorted(found.get_group_options(parent, ObjectType.GROUP)):
        group = f"{parent}/{name}".lstrip("/")
        if group == "hydra":
            continue
        options = sorted(found.get_group_options(group, ObjectType.CONFIG))
        if options:
            yield f"{group}: {', '.join(options)}"
        yield from _choices(found, group)
