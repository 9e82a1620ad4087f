"""How numbers and names are written in everything that people read."""

import math

DASH, MINUS, TIMES = "\u2013", "\u2212", "\u00d7"


def percent(score: float | None, digits: int = 1) -> str:
    """Return a fraction as percent without the percent sign; a dash if it is undefined."""
    if score is None or math.isnan(score):
        return DASH
    return f"{100 * score + 0.0:.{digits}f}".replace("-", MINUS)  # + 0.0: no minus before a true 0


def count(number: int, what: str) -> str:
    """Return a number with its noun, in the plural if needed.

    >>> count(1, "task"), count(26, "task")
    ('1 task', '26 tasks')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def data_label(source: str) -> str:
    """Return how the source of the data is named; generated data in capitals."""
    return "GENERATED data" if source == "generated" else f"data from {source}"
