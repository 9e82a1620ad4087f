"""The errors that users can cause or meet; the command line prints each as one line."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class UserError(ValueError):
    """A mistake of the user. The message has the value and the valid choices."""


class NeededError(UserError):
    """A setting without a default has no value."""


class TrainingDivergedError(RuntimeError):
    """A loss is not finite. The message has the task, the step and the learning rate."""


class IsolationError(RuntimeError):
    """A learner with parameter isolation changed something that serves an earlier task."""


def unknown(what: str, value: object, choices: Iterable[str]) -> UserError:
    """Return the error for an unknown name, with the nearest valid name.

    Args:
        what: what the name is of, such as ``"task"``.
        value: the name that was given.
        choices: all valid names.
    """
    names = list(choices)
    folded = {name.lower(): name for name in names}  # case does not count
    near = difflib.get_close_matches(str(value).lower(), folded, n=1, cutoff=0.5)
    hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
    listed = ", ".join(names) or "none"
    return UserError(f"unknown {what} {value!r}.{hint} Valid: {listed}")


def choose(what: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Args:
        what: what the name is of, such as ``"task"``.
        value: the name that was given.
        choices: all valid names.

    Raises:
        UserError: ``value`` is none of the choices.
    """
    names = list(choices)
    if value not in names:
        raise unknown(what, value, names)
    return value


@contextmanager
def understood(what: object) -> Iterator[None]:
    """Turn errors of reading foreign data into a `UserError` that names where the data are.

    For blocks that read values which another program or person may have written. ``what`` is the
    file or object that contains them.

    Raises:
        UserError: a value is missing or does not have the expected form.
    """
    try:
        yield
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{what} cannot be understood: {reason}") from error


def one_line(error: BaseException) -> str:
    """Return the whole message of an error on one line; its kind if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether there was no memory: of Python or NumPy, or of torch on a CPU or a GPU."""
    kinds = {kind.__name__ for kind in type(error).__mro__}  # torch need not be imported for it
    by_allocator = isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or by_allocator


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise `UserError` with ``message`` unless ``condition`` is true."""
    if not condition:
        raise UserError(message)
