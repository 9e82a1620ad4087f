"""The new folder of a run: it goes again where the run ends before it began, by a mistake.

Some mistakes are seen only with torch, the encoder or the data, when the folder is there already.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from stream.errors import UserError
from stream.files.run_folder import LOCK, LOG_NAME


def lacking(folder: Path) -> list[Path]:
    """Return a folder and those above it that are not there yet, the innermost first."""
    path = Path(os.path.abspath(folder))
    return list(takewhile(lambda part: not os.path.lexists(part), [path, *path.parents]))


@contextmanager
def gone_unless_begun(made: Sequence[Path]) -> Iterator[None]:
    """Remove a run folder again after a mistake or a signal in the block, unless the run began.

    It did if the folder has more than every start writes. Who calls this holds the folder's lock,
    so that no other process writes there.

    Args:
        made: the folders that this process made for the run, the innermost first; nothing is
            removed where it made none.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt):
        with suppress(OSError):  # the mistake is told, whatever becomes of the folder
            _remove(made)
        raise


def _remove(made: Sequence[Path]) -> None:
    """Remove folders, as far as nothing but the first files of a run is in them."""
    for folder in made[:1]:
        if {path.name for path in folder.iterdir()} <= {LOCK, LOG_NAME}:
            (folder / LOG_NAME).unlink(missing_ok=True)
            (folder / LOCK).unlink(missing_ok=True)
    for folder in made:
        folder.rmdir()
