"""The members of Hydra's groups that cannot be used, and why, such as a learner's broken file.

Hydra's own store of groups is one for each process, and so is this.
"""

from collections.abc import Iterable, Mapping

from stream.errors import UserError, unknown

_UNUSABLE: dict[tuple[str, str], str] = {}


def unusable(group: str, reasons: Mapping[str, str]) -> None:
    """Remember why names of a group cannot be used."""
    _UNUSABLE.update({(group, name): reason for name, reason in reasons.items()})


def not_a_member(group: str, name: str, members: Iterable[str]) -> UserError:
    """Return the error for a name that is no member of a group.

    Args:
        group: the group, such as ``learner``.
        name: the name that was given.
        members: the names that are valid.
    """
    if (group, name) in _UNUSABLE:
        return UserError(f"{group} {name!r} cannot be used: {_UNUSABLE[group, name]}")
    broken = [f"{n} (broken: {why})" for (of, n), why in _UNUSABLE.items() if of == group]
    return unknown(group, name, [*members, *broken])
