"""How methods are called: one name for each, the same in tables, figures and the report.

A method is a learner, or a preset of it, with settings. Its label says in brackets how it differs
from the others of that name; its name is the label, or shorter where that would be too long.
"""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.runs.collect import RecordedRun
from stream.config.run import ADDED
from stream.formatting import visible
from stream.record.method_name import chosen_learner
from stream.record.run_record import RunRecord

PARTS = ("learner", "training", "backbone")  # the parts of the config that make up a method
LONGEST = 36  # characters of a name
LONGEST_LINE = 300  # characters of the settings behind a numbered name

Settings = Mapping[str, str | None]


@dataclass(frozen=True)
class MethodNames:
    """What methods are called.

    Attributes:
        by_label: names of at most `LONGEST` characters, without unseen ones, by label.
        settings: of a numbered name what it stands for, by label.
        notes: what the names leave out, a line each.
    """

    by_label: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def settings_of(record: RunRecord) -> dict[str, str]:
    """The settings of a run's method by dotted key, as text."""
    return dict(_flatten(record))


def _flatten(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "backbone", record.backbone
    yield "scenario", record.scenario
    chosen = record.config.get("select")  # what each task chooses from; else the learner's settings
    yield "select", str(chosen).replace("'", "") if chosen else "none"
    parts = (*PARTS, "router") if record.scenario == "inferred" else PARTS
    pending = [(name, record.config.get(name)) for name in parts]
    for key, value in pending:  # grows while it is read
        if isinstance(value, dict):
            pending.extend((f"{key}.{name}", inner) for name, inner in value.items())
        elif key in ADDED and value == ADDED[key]:
            continue  # as in an older record, which lacks it
        elif key not in ("backbone", "backbone.name", "learner.name"):
            yield key, str(value)


def method_labels(runs: Sequence[RecordedRun], ignore: Collection[str] = ()) -> list[str]:
    """Each run's learner and the settings in which it differs from the others.

    Settings of the learner itself are held against runs of that name, the rest (training,
    backbone) against all. Seeds are no setting: runs with equal labels repeat one method.

    Args:
        runs: runs of one stream.
        ignore: dotted settings that make no difference here, such as ``learner.size``.
    """
    settings = [_without(settings_of(run.record), ignore) for run in runs]
    heads = _heads(runs, settings)
    varied: dict[str, list[str]] = {}
    for head, peers in _by_head(heads, settings).items():
        keys = sorted({key for peer in peers for key in peer})
        against = {key: peers if key.startswith("learner.") else settings for key in keys}
        varied[head] = [k for k in keys if len({one.get(k) for one in against[k]}) > 1]
    return [
        _label(head, {key: own.get(key) for key in varied[head]})
        for head, own in zip(heads, settings, strict=True)
    ]


def variant_labels(runs: Sequence[RecordedRun]) -> list[str]:
    """Each run's learner and the settings in which it differs from most runs of that name.

    Shorter than `method_labels` where each run changes one setting of many.
    """
    settings = [settings_of(run.record) for run in runs]
    heads = _heads(runs, settings)
    usual: dict[str, Settings] = {}
    for head, peers in _by_head(heads, settings).items():
        keys = sorted({key for peer in peers for key in peer})
        counts = {key: Counter(peer.get(key) for peer in peers) for key in keys}
        usual[head] = {key: found.most_common(1)[0][0] for key, found in counts.items()}
    labels = []
    for head, own in zip(heads, settings, strict=True):
        items = usual[head].items()
        labels.append(_label(head, {k: own.get(k) for k, value in items if own.get(k) != value}))
    return labels


def _without(settings: Settings, ignore: Collection[str]) -> Settings:
    return {key: value for key, value in settings.items() if key not in ignore}


def _heads(runs: Sequence[RecordedRun], settings: Sequence[Settings]) -> list[str]:
    """What stands before the brackets for each run: the preset that was chosen, or the learner.

    The learner where runs of equal settings were given by different names, and where one name
    stands for several learners.
    """
    given: defaultdict[tuple[str, frozenset[tuple[str, str | None]]], set[str]] = defaultdict(set)
    learners: defaultdict[str, set[str]] = defaultdict(set)
    own = [run.record.learner for run in runs]
    names = [chosen_learner(run.record) for run in runs]
    keys = [(learner, frozenset(s.items())) for learner, s in zip(own, settings, strict=True)]
    for key, name, learner in zip(keys, names, own, strict=True):
        given[key].add(name)
        learners[name].add(learner)
    return [
        name if len(given[key]) == len(learners[name]) == 1 else learner
        for key, name, learner in zip(keys, names, own, strict=True)
    ]


def _by_head(heads: Sequence[str], settings: Sequence[Settings]) -> dict[str, list[Settings]]:
    """The settings of all runs of each name."""
    found: defaultdict[str, list[Settings]] = defaultdict(list)
    for head, own in zip(heads, settings, strict=True):
        found[head].append(own)
    return found


def _label(head: str, settings: Settings) -> str:
    """The name with settings in brackets."""
    notes = [f"{key.removeprefix('learner.')}={value}" for key, value in settings.items()]
    return f"{head} ({', '.join(notes)})" if notes else head


def group(runs: Sequence[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """The runs of each method by label, by seed within; methods in order of appearance."""
    groups: defaultdict[str, list[RecordedRun]] = defaultdict(list)
    for label, run in zip(method_labels(runs), runs, strict=True):
        groups[label].append(run)
    return {label: sorted(g, key=lambda run: run.record.seed) for label, g in groups.items()}


def method_names(runs: Sequence[RecordedRun]) -> MethodNames:
    """A name for each method, by label, and lines about the names.

    Where a label of a learner is too long, its methods are called by what differs from most runs
    of that learner; where that is too long as well, they are numbered, and a line says the settings
    of each.
    """
    own = [settings_of(run.record) for run in runs]
    told = zip(_heads(runs, own), variant_labels(runs), strict=True)
    known = {id(run): pair for run, pair in zip(runs, told, strict=True)}
    variants: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for label, members in group(runs).items():
        head, variant = known[id(members[0])]
        variants[head][label] = visible(variant, 999)
    names, shortened = MethodNames(), []
    for head, by_label in variants.items():
        if all(len(visible(label)) <= LONGEST for label in by_label):
            names.by_label.update({label: visible(label) for label in by_label})
        elif all(len(name) <= LONGEST for name in by_label.values()):
            names.by_label.update(by_label)
            shortened += [visible(head)] * (len(by_label) > 1)
        else:
            _number(names, head, by_label)
    if shortened:
        which = f" after {', '.join(shortened)}" if len(shortened) < len(variants) else ""
        note = f"In brackets{which}: how a method differs from most runs of its learner."
        names.notes.insert(0, note)
    return names


def _number(names: MethodNames, head: str, variants: Mapping[str, str]) -> None:
    """Number the methods of one name.

    Args:
        names: where to note them.
        head: the name that they share.
        variants: how each differs from most of their runs, by label.
    """
    shown = visible(head, LONGEST - 4)
    for number, (label, variant) in enumerate(variants.items(), start=1):
        name = f"{shown} #{number}" if len(variants) > 1 else shown
        names.by_label[label] = name
        settings = variant[len(visible(head)) :].strip(" ()")
        if settings:
            names.settings[label] = settings
            names.notes.append(f"{name}: {_shortened(settings)}")


def _shortened(settings: str) -> str:
    """The settings as far as they fit; how many more there are and where to see them."""
    kept = textwrap.shorten(settings, LONGEST_LINE, placeholder="")
    if kept == settings:
        return settings
    kept = kept.rstrip(",") or settings[:LONGEST_LINE]
    more = settings.count(", ") - kept.count(", ")
    return f"{kept}, and {more} more (--json has all)" if more else f"{kept}… (--json has all)"
