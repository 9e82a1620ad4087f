"""From what a person typed to Hydra's grammar: folders as they are called, choices by their names.

Hydra's grammar reads ``a,b`` as two values and ``1_0`` as a number, and cannot read ``o'brien`` or
``in tr=x`` at all. In a setting that is a path or a name, a value stands for itself, character for
character, except for ``null``, for what stands in Hydra's own quotes, for ``${...}`` where nothing
has that name, and for several values where several runs are asked for. The choices of a group are
names, also where they look like numbers or truth values.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, Quote, QuotedString
from hydra.errors import HydraException

from stream.config.complaints import complaints
from stream.config.compose import literal
from stream.config.names import GROUPS
from stream.config.workers import SHORT_FORM
from stream.errors import require

AS_TYPED = re.compile(
    r"resume|cache|sweep|data\.root|backbone\.(location|tokenizer|family|revision|sha256)|"
    r"hydra\.(run|sweep)\.dir|task\..+\.(folder|revision|title|source)|"
    r"tracking\.(project|entity|run_name|group|job_type|notes)"
)
"""The settings that are paths, names or sentences, such as a commit that begins with ``7e12``."""
OPTIONAL = ("protocol", "experiment")
"""The groups of which nothing may be chosen."""
OPEN = "select."
"""How the names of settings begin that are added to a dict, which is null without them."""


def without_dashes(arguments: Iterable[str], options: Iterable[str]) -> list[str]:
    """Return arguments with ``name=value`` for ``--name=value``, as agents of W&B sweeps pass it.

    Args:
        arguments: what was typed.
        options: the names that keep their dashes; an option may be shortened.
    """
    known = list(options)

    def is_setting(text: str) -> bool:
        name, equals, _ = text.partition("=")
        own = any(option.startswith(name) for option in known)
        return name.startswith("--") and equals == "=" and not own

    return [text[2:] if is_setting(text) else text for text in arguments]


def of_agent(argument: str) -> str:
    """Return an argument that an agent of W&B sweeps wrote: null is Python's ``None`` there."""
    name, equals, value = argument.partition("=")
    return f"{name}=null" if equals and value == "None" else argument


def parse(texts: Iterable[str]) -> list[Override]:
    """Return settings as Hydra's grammar has them.

    Raises:
        UserError: a text that is none.
    """
    with complaints():
        return OverridesParser.create().parse_overrides(list(texts))


def in_grammar(text: str, *, multirun: bool) -> str:
    """Return a setting as it was typed in Hydra's grammar.

    Args:
        text: the setting.
        multirun: whether several runs are asked for.

    Raises:
        UserError: no value, or a list where one name is needed.
    """
    start, equals, value = text.partition("=")
    key = start.lstrip("+~")
    require(key != "", f"{text!r} names no setting; give NAME=VALUE")
    if not equals or start.startswith("~"):
        return text
    if start.startswith(OPEN):
        return f"++{text}"
    if start == SHORT_FORM:
        return f"{SHORT_FORM}.count={value}"
    is_group = key.partition("@")[0] in GROUPS or "/" in key
    is_text = AS_TYPED.fullmatch(key) is not None
    may_be_empty = is_group or (key.startswith("hydra.") and not is_text)  # it is an empty text
    require(value != "" or may_be_empty, f"{text} has no value; give {start}=VALUE")
    if is_text:
        as_typed = _is_read_right(text, key, value, multirun=multirun)
        return text if as_typed else f"{start}={literal(value)}"
    return _choice(text, start, key, value) if is_group else text


def _parsed(text: str) -> Override | None:
    """Return a setting as Hydra's grammar has it; None for what it cannot read."""
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        return None


def _is_read_right(text: str, key: str, value: str, *, multirun: bool) -> bool:
    """Return whether Hydra's grammar reads the text that was typed."""
    parsed = _parsed(text)
    if parsed is None:
        return False
    if parsed.is_sweep_override():
        return multirun
    if "${" in value and (key == "resume" or Path(value).exists()):
        return False
    in_quotes = isinstance(parsed._value, QuotedString)
    return in_quotes or parsed.value() is None or parsed.value() == value


def _choice(text: str, start: str, key: str, value: str) -> str:
    """Return the setting of a group so that Hydra reads names.

    Raises:
        UserError: a list where one name is needed.
    """
    parsed = _parsed(text)
    if parsed is None:
        return text
    found = parsed._value
    if found is None and key in OPTIONAL:
        return f"~{key}"
    if isinstance(found, ChoiceSweep):
        names = [_name(text, key, item) for item in found.list]
        shown = ",".join(map(Override._get_value_element_as_str, names))
        return text if names == found.list else f"{start}={shown}"
    if parsed.is_sweep_override():
        return text
    is_text = isinstance(found, str | QuotedString | list | dict)
    name = _name(text, key, found if is_text else QuotedString(value.strip(), Quote.single))
    return text if name is found else f"{start}={Override._get_value_element_as_str(name)}"


def _name(text: str, key: str, found: Any) -> Any:
    """Return a choice as a name, or as a list of names where that is possible."""
    if isinstance(found, list) and key == "task":
        names = [_name(text, "each task", item) for item in found]
        return found if names == found else names
    require(not isinstance(found, list | dict), f"{text}: {key} is one name, without brackets")
    if isinstance(found, str | QuotedString):
        return found
    return QuotedString("null" if found is None else str(found).lower(), Quote.single)
