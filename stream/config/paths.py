"""Where files are: the YAML files, the user's cache, and a backbone's files."""

import importlib.util
import os
from contextlib import suppress
from pathlib import Path

from stream.config.backbone import BackboneConfig
from stream.errors import UserError, require


def conf_folder() -> Path:
    """Return the folder of the YAML files; in the repository the package has a link to it."""
    return Path(__file__).parent.parent / "conf"


def from_home(path: str | Path) -> Path:
    """Return a path whose ``~`` is the home folder.

    Raises:
        UserError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        told = f"{str(path)!r}: the home folder is not known (HOME is not set); write it in full"
        named = f"{str(path)!r}: there is no home folder of that name"
        raise UserError(told if str(path).split("/")[0] == "~" else named) from error


def cache_folder(configured: str | None) -> Path:
    """Return the folder for what is fetched or computed once: ``cache=``, or the user's cache."""
    if configured is not None:
        return from_home(configured)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return from_home(base) / "task-stream"


def locate(config: BackboneConfig) -> str:
    """Return what transformers loads from: a folder's path, or an id on the hub.

    Raises:
        UserError: a package that is not installed, or a folder that is not there.
    """
    location = config.location or ""
    if config.origin == "package":
        package = _package(location)
        if package is None:
            raise UserError(f"backbone {config.name!r}: the package {location!r} is not installed")
        return str(package / "model")
    if config.origin == "folder":
        folder = from_home(location)
        require(
            (folder / "config.json").is_file(),
            f"backbone.location={location!r}: no config.json in {folder.resolve()}",
        )
        return str(folder)
    return location


def tokenizer_location(config: BackboneConfig) -> str:
    """Return where the tokenizer's files are: ``backbone.tokenizer``, or the encoder's own.

    Raises:
        UserError: random weights without a tokenizer; otherwise as `locate`.
    """
    if config.tokenizer is None:
        require(
            config.origin != "random",
            f"backbone {config.name!r} has random weights and no tokenizer of its own; give "
            "backbone.tokenizer=PATH (a folder, an installed package or an id on the hub)",
        )
        return locate(config)
    package = _package(config.tokenizer)
    return os.path.expanduser(config.tokenizer) if package is None else str(package / "model")


def _package(name: str) -> Path | None:
    """Return the folder of an installed package; None if there is none of this name."""
    with suppress(ImportError, ValueError):  # such as ./folder, or a.b without a
        package = importlib.util.find_spec(name)
        if package is not None and package.origin is not None:
            return Path(package.origin).parent
    return None
