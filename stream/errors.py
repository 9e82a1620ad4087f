"""The errors that a person can cause or meet; the command line turns each into one line."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any


class UserError(ValueError):
    """A mistake in what the user asked for. Says the value found and the valid choices."""


class TrainingDivergedError(RuntimeError):
    """A non-finite loss. Names the task, the step and the learning rate."""


class IsolationError(RuntimeError):
    """A learner that promises perfect memory changed what serves an earlier task."""


def unknown(what: str, value: object, choices: Iterable[str]) -> UserError:
    """Build the error for a name that does not exist, with its nearest match.

    Args:
        what: the kind of thing named, such as ``"task"``.
        value: the name that was given.
        choices: every valid name.
    """
    names = list(choices)
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names) or "none"
    return UserError(f"unknown {what} {value!r}.{hint} Valid: {listed}")


def choose(what: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``; raise `UserError` otherwise."""
    names = list(choices)
    if value not in names:
        raise unknown(what, value, names)
    return value


@contextmanager
def understood(what: object) -> Iterator[None]:
    """Read values that somebody else may have written; what they are in is named if it fails.

    Raises:
        UserError: a value inside the block is missing, or of another form than expected.
    """
    try:
        yield
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{what} cannot be understood: {reason}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its type where there is none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise `UserError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise UserError(message)


def require_effect(settings: Any, key: str, *, used: bool, otherwise: str) -> None:
    """Refuse a setting that is not read, unless it has its default.

    Args:
        settings: the dataclass that holds it.
        key: how the command line names it, such as ``learner.size``.
        used: whether it is read.
        otherwise: in what case it is not, as the message says it.
    """
    name = key.rpartition(".")[2]
    value = getattr(settings, name)
    default = next(field.default for field in fields(settings) if field.name == name)
    require(used or value == default, f"{key}={value} has no effect {otherwise}")
