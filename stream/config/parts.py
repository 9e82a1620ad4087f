"""From a set that is cut by class to its parts, each a task of its own."""

from collections.abc import Sequence
from dataclasses import replace

from stream.config.cut import CutSpec, PartSpec
from stream.config.task import TaskSpec
from stream.errors import choose, require
from stream.seeding import numpy_generator

FEWEST = 2  # classes of a task


def parts_of(name: str, spec: TaskSpec, cut: CutSpec) -> dict[str, TaskSpec]:
    """Return the parts of a set by name, in order; the set itself if it stays whole.

    Args:
        name: the set's name.
        spec: its specification.
        cut: how it is cut.

    Raises:
        UserError: the set has no classes, or the parts are not apart or too small.
    """
    if cut.is_whole:
        return {name: spec}
    labels = list(spec.labels or ())
    what = "answers" if spec.target == "span" else "scores"
    require(bool(labels), f"task {name!r} cannot be cut by class: it has {what}, no classes")
    return {
        f"{name}_{key}": replace(
            spec,
            title=f"{spec.title} {key.replace('_', ' ')}",
            labels=own,
            cut=CutSpec(),
            part=PartSpec(name, labels),
        )
        for key, own in _classes(name, labels, cut).items()
    }


def whole_of(spec: TaskSpec) -> TaskSpec:
    """Return the specification of the set that a task is a part of, to read its rows."""
    return replace(spec, labels=list(spec.part.labels), part=PartSpec())


def _classes(name: str, labels: Sequence[str], cut: CutSpec) -> dict[str, list[str]]:
    """Return the labels of each part.

    Raises:
        UserError: a class that does not exist or that stands twice, or a part of one class.
    """
    found: dict[str, list[str]] = {}
    if cut.classes is None:
        for key, given in cut.parts.items():
            found[str(key)] = [_label(name, labels, at) for at in given]
    else:
        ordered = list(labels)
        if cut.seed is not None:
            order = numpy_generator(cut.seed, "cut", name).permutation(len(labels))
            ordered = [labels[int(at)] for at in order]
        for number, start in enumerate(range(0, len(labels), cut.classes), start=1):
            found[str(number)] = ordered[start : start + cut.classes]
    used = [label for part in found.values() for label in part]
    twice = sorted({label for label in used if used.count(label) > 1})
    require(not twice, f"task {name!r}: cut puts a class into two places: {', '.join(twice)}")
    small = [key for key, part in found.items() if len(part) < FEWEST]
    require(
        not small,
        f"task {name!r}: of its {len(labels)} classes, cut leaves one to part {', '.join(small)}; "
        f"a task needs at least {FEWEST}",
    )
    return found


def _label(name: str, labels: Sequence[str], given: object) -> str:
    """Return the label that a cut names, by itself or by its position."""
    if type(given) is int:
        last = len(labels) - 1
        require(0 <= given <= last, f"task {name!r}: cut names class {given}; valid: 0 to {last}")
        return labels[given]
    text = isinstance(given, str)
    require(text, f"task {name!r}: cut names {given!r}, no label or position; quote a label")
    return choose(f"class of task {name!r}", str(given), labels)
