"""The YAML files that Hydra composes from: one that is as it was is not read again."""

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from hydra._internal.config_repository import ConfigRepository
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf.errors import OmegaConfBaseException

from stream.config.wording import NAMES
from stream.errors import UserError, one_line

NO_SETTINGS = "Invalid loaded object type"
"""What OmegaConf says of a file with a number or a truth value alone."""


class Repository(ConfigRepository):
    """What Hydra reads files with; it copies it for every composition, to name other folders.

    A file that is as it was is not read again: reading takes a third of the time of composing.
    """

    _read: ClassVar[dict[tuple[str, str], tuple[object, ConfigResult | None]]] = {}
    """What each file gave in its present state; of this process, like Hydra's own store."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Repository":
        """Share the sources, one of which is the store with the dataclasses of all settings."""
        copied = copy.copy(self)
        copied.sources = [*self.sources]
        return copied

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return what Hydra makes of a file, or of a dataclass in its store.

        Raises:
            UserError: the file cannot be read or is not UTF-8, has no names at its top, or its
                ``defaults`` are no list of names.
        """
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        state: object = None if source is None else source.scheme()
        if source is None or state not in ("file", "pkg"):
            return super().load_config(config_path)
        path = f"{source.full_path()}/{config_path}.yaml"
        if state == "file":
            state = state_of(path.removeprefix("file://"))
        key = source.provider, path
        if state is None or key not in self._read or self._read[key][0] != state:
            with _told(path.removeprefix("file://")):
                self._read[key] = state, super().load_config(config_path)
        return copy.deepcopy(self._read[key][1])


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Name the file that is read in the block; what OmegaConf says of it is told elsewhere.

    Raises:
        UserError: it cannot be read, or has another form.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error}") from error
    except OmegaConfBaseException:
        raise
    except OSError as error:
        is_read = NO_SETTINGS in str(error)
        reason = f"must be {NAMES}, at its top too" if is_read else error.strerror
        raise UserError(f"{path}: {reason}") from error
    except ValueError as error:  # of the file's defaults
        raise UserError(f"{path}: {one_line(error)}") from error
    except RecursionError as error:
        raise UserError(f"{path}: a value in it contains itself") from error


def state_of(path: str) -> object:
    """Return what changes when a file does; None for one that is called otherwise."""
    try:
        file = os.stat(path)
    except OSError:
        return None
    return file.st_dev, file.st_ino, file.st_mtime_ns, file.st_size
