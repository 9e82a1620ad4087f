"""Finds the family of an encoder: among the files here, those of other packages, or one's own."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from stream.errors import require
from stream.models.families.family import Family, listed, read_family

ENTRY_POINTS = "task_stream.families"
"""The group of entry points; each names the path of a YAML file."""
HOW = "docs/encoders.md says how to describe another in a YAML file (backbone.family=FILE)"


@cache
def known_families() -> tuple[Family, ...]:
    """Return the families of this package, then those of entry points."""
    own = sorted(Path(__file__).parent.glob("*.yaml"))
    others = [Path(entry.load()) for entry in entry_points(group=ENTRY_POINTS)]
    return tuple(map(read_family, [*own, *others]))


def known_types() -> list[str]:
    """Return every model type that a family is known for."""
    return sorted(name for family in known_families() for name in family.model_types)


def find_family(model_type: object, *, where: str, described: str | None = None) -> Family:
    """Return the family of an encoder.

    Args:
        model_type: what its configuration says.
        where: what the configuration is called in a message.
        described: the path of a YAML file that describes the family, if one was given.

    Raises:
        UserError: no family has that model type.
    """
    families: Sequence[Family] = known_families()
    if described is not None:
        families = [read_family(Path(described).expanduser())]
    found = [family for family in families if model_type in family.model_types]
    require(
        len(found) > 0,
        f"{where}: model_type={model_type!r} is not an encoder family that is known here. Known: "
        f"{listed(families)}; {HOW}",
    )
    return found[-1]
