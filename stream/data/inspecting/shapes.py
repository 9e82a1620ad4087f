"""What the values of a column look like: texts, numbers, addresses, dates, and so on."""

import re
from collections.abc import Iterable
from itertools import islice

NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*")
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
DAYS = "mon|tue|wed|thu|fri|sat|sun"
# The first shape that most values have is that of the column; what has none is text.
SHAPES = {
    "numbers": NUMBER,
    "addresses": re.compile(r"\s*(?:https?://|www\.)\S+\s*|\s*[^\s@]+@[^\s@]+\.\w+\s*", re.I),
    "dates": re.compile(
        rf"(?=.{{4,40}}\Z)(?=.*\d)(?=.*[-/.:].*[-/.:]|.*(?:{MONTHS}))"
        rf"(?:(?:{MONTHS}|{DAYS})[a-z]*\b|\d|(?<=\d)(?:st|nd|rd|th|t|z)|"
        r"[ap]m\b|utc\b|gmt\b|\b[a-z]{1,3}t\b|[-/.:,+ ])+",
        re.IGNORECASE,
    ),
    "lists or objects": re.compile(r"\s*(?:\[.*\]|(?=[^:,]*[:,])\{.*\})\s*", re.DOTALL),
    "HTML": re.compile(r"\s*<[a-zA-Z!][^>]*>.*(?:</\w+>|/>|<br>).*", re.DOTALL | re.IGNORECASE),
    "parse trees": re.compile(r"\s*\([^()]*\(.*\)\s*\)\s*", re.DOTALL),
    "identifiers": re.compile(
        r"(?=\D*\d)[A-Za-z0-9_.:/#=+-]+|(?=[^/\\]+[/\\].)[!-~]+|[!-~]+\.[a-z]{3,4}|[\W\d_]+"
    ),
}
TEXT = "text"
MOST = 0.5  # share of the values that must have a shape
SAMPLE = 2000  # different values that are looked at


def shape_of(values: Iterable[str]) -> str:
    """Return what most of the different values look like: a name of `SHAPES`, or `TEXT`."""
    sample = list(islice(values, SAMPLE))
    for name, pattern in SHAPES.items():
        if sum(pattern.fullmatch(value) is not None for value in sample) > MOST * len(sample):
            return name
    return TEXT
