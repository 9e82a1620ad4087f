"""How numbers and names are written in everything that people read."""

import math
import unicodedata
from pathlib import Path

CUSTOM = "custom"  # the name of a stream of tasks that are not those of a named one
DASH, MINUS, TIMES = "\u2013", "\u2212", "\u00d7"

# Control, format (bidirectional overrides too), lone surrogates, private and unassigned
# characters, line and paragraph separators: none of them shows what it does.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def percent(score: float | None, digits: int = 1) -> str:
    """Return a fraction as percent without the percent sign; a dash if it is undefined.

    >>> percent(0.1234), percent(-0.0001)
    ('12.3', '0.0')
    """
    if score is None or math.isnan(score):
        return DASH
    text = f"{100 * score:.{digits}f}"
    return text.replace("-", MINUS if text.strip("-0.") else "")  # no minus before what shows as 0


def stream_title(name: str) -> str:
    """Return what a stream is called in words.

    >>> stream_title("houlsby26"), stream_title("custom")
    ('houlsby26', 'a custom stream')
    """
    return "a custom stream" if name == CUSTOM else name


def from_here(path: Path) -> Path:
    """Return a path from the present folder if it lies below that, else the path itself."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def signed(fraction: float) -> str:
    """Return a difference in percentage points with its sign; what rounds to 0 has none.

    >>> signed(0.012), signed(-0.0001)
    ('+1.2', '0.0')
    """
    text = percent(fraction)
    return text if text.startswith((MINUS, DASH)) or not text.strip("0.") else f"+{text}"


def count(number: int, what: str) -> str:
    """Return a number with its noun, in the plural if needed.

    >>> count(1, "task"), count(26, "task")
    ('1 task', '26 tasks')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def storage(num_bytes: float) -> str:
    """Return a number of bytes with its unit, three digits of it.

    >>> storage(640), storage(8080), storage(2.66e6)
    ('640 bytes', '8.08 kB', '2.66 MB')
    """
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= least:
            return f"{num_bytes / least:.3g} {unit}"
    return f"{num_bytes:.0f} bytes"


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours where there are some.

    >>> clock(9.6), clock(3723)
    ('0:10', '1:02:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def data_label(source: str) -> str:
    """Return how the source of the data is named; generated data in capitals."""
    return "GENERATED data" if source == "generated" else f"data from {source}"


def visible(text: object, limit: int = 200) -> str:
    r"""Return text with every unseen character as its escape, cut to ``limit`` characters.

    >>> visible("a\u202eb")
    'a\\u202eb'
    """
    shown = "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in HIDDEN else letter
        for letter in str(text)[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quoted(text: str) -> str:
    """Return a text in quotes, with its unseen characters as escapes."""
    return f"'{visible(text)}'"
