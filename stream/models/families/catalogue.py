"""Finds the family of an encoder: among the files here, those of other packages, or one's own."""

from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from stream.config.paths import from_home
from stream.errors import UserError, first_line, require
from stream.models.families.family import Family, read_family

ENTRY_POINTS = "task_stream.families"
"""The group of entry points; each names the path of a YAML file."""
HOW = (
    "docs/how-to/encoders.md says how to describe another, in a YAML file (backbone.family=FILE) "
    f"or in a package (entry points {ENTRY_POINTS})"
)


@cache
def own_families() -> tuple[Family, ...]:
    """Return the families of this package."""
    return tuple(map(read_family, sorted(Path(__file__).parent.glob("*.yaml"))))


@cache
def other_families() -> tuple[Family, ...]:
    """Return the families that other packages describe.

    Raises:
        UserError: an entry point cannot be read.
    """
    found = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            path = Path(entry.load())
        except Exception as error:  # whatever a package does when it is imported
            raise UserError(
                f"cannot read the encoder family {entry.name!r} of the entry points "
                f"{ENTRY_POINTS} ({entry.value}): {type(error).__name__}: {first_line(error)}"
            ) from error
        found.append(read_family(path))
    return tuple(found)


def known_types() -> list[str]:
    """Return every model type that a family is known for."""
    families = (*own_families(), *other_families())
    return sorted({name for family in families for name in family.model_types})


def find_family(model_type: object, *, where: str, described: str | None = None) -> Family:
    """Return the family of an encoder: of this package, or else of another one.

    Args:
        model_type: what its configuration says.
        where: what the configuration is called in a message.
        described: the path of a YAML file that describes the family, if one was given.

    Raises:
        UserError: no family has that model type, or a description of one cannot be read.
    """
    if described is not None:
        family = read_family(from_home(described))
        require(
            model_type in family.model_types,
            f"{where}: model_type={model_type!r}, but backbone.family={described} describes "
            f"{', '.join(family.model_types)} (its model_types)",
        )
        return family
    for families in (own_families, other_families):
        for family in families():
            if model_type in family.model_types:
                return family
    raise UserError(
        f"{where}: model_type={model_type!r} is not an encoder family that is known here. Known: "
        f"{', '.join(known_types())}; {HOW}"
    )
