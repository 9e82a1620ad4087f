"""How methods are called in a table: short names, and lines that say what a name leaves out."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from analysis.runs.collect import RecordedRun
from analysis.runs.methods import group, variant_labels
from stream.formatting import visible

LONGEST = 36  # characters of a name
LONGEST_LINE = 300  # characters of the settings behind a numbered name


def short_names(runs: Sequence[RecordedRun]) -> tuple[dict[str, str], list[str]]:
    """A name of at most `LONGEST` characters for each method, by label; lines about them.

    A label that is too long becomes what differs from most runs of its learner; where that is too
    long as well, all methods of that learner are numbered, and a line says the settings of each.
    """
    methods = group(runs)
    if all(len(visible(label)) <= LONGEST for label in methods):
        return {label: visible(label) for label in methods}, []
    variants = dict(zip(map(id, runs), variant_labels(runs), strict=True))
    names = {label: visible(variants[id(members[0])], 999) for label, members in methods.items()}
    if all(len(name) <= LONGEST for name in names.values()):
        return names, ["In brackets: how a method differs from most runs of its learner."]
    return _numbered(methods, names)


def _numbered(
    methods: Mapping[str, Sequence[RecordedRun]], names: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    learners = {label: visible(m[0].record.learner, LONGEST - 4) for label, m in methods.items()}
    total, number = Counter(learners.values()), Counter[str]()
    found, lines = {}, []
    for label, learner in learners.items():
        number[learner] += 1
        found[label] = f"{learner} #{number[learner]}" if total[learner] > 1 else learner
        settings = names[label][len(learner) :].strip(" ()")
        if settings:
            lines.append(f"{found[label]}: {_shortened(settings)}")
    return found, lines


def _shortened(settings: str) -> str:
    """The settings as far as they fit; how many more there are and where to see them."""
    kept = textwrap.shorten(settings, LONGEST_LINE, placeholder="")
    if kept == settings:
        return settings
    kept = kept.rstrip(",") or settings[:LONGEST_LINE]
    more = settings.count(", ") - kept.count(", ")
    return f"{kept}, and {more} more (--json has all)" if more else f"{kept}… (--json has all)"
