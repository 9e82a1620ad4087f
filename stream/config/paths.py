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


def cache_folder(configured: str | None) -> Path:
    """Return the folder for what is fetched or computed once: ``cache=``, or the user's cache."""
    if configured is not None:
        return Path(configured).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "task-stream"


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
        folder = Path(location).expanduser()
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
