"""Methods: which runs repeat one learner with equal settings, how it is called, its estimates.

T is the number of tasks, n that of the counted runs of a method. Scores are fractions.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import Estimate
from analysis.runs.values import Value, num_learned
from stream.config.run import ADDED
from stream.formatting import visible
from stream.record.run_record import RunRecord

PARTS = ("learner", "training", "backbone")  # the parts of the config that make up a method
REFERENCES = ("joint", "pals", "independent", "majority", "tfidf", "frozen")
ALL_AT_ONCE = ("joint", "pals")  # references that learn all tasks together, not as a stream
LONGEST_LABEL = 60  # characters


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

    Settings of the learner itself are held against runs of the same learner, the rest (training,
    backbone) against all. Seeds are no setting: runs with equal labels repeat one method.

    Args:
        runs: runs of one stream.
        ignore: dotted settings that make no difference here, such as ``learner.size``.
    """
    settings = [settings_of(run.record) for run in runs]
    varied: dict[str, list[str]] = {}
    for learner, peers in _by_learner(runs, settings).items():
        keys = sorted({key for peer in peers for key in peer} - set(ignore))
        against = {key: peers if key.startswith("learner.") else settings for key in keys}
        varied[learner] = [k for k in keys if len({one.get(k) for one in against[k]}) > 1]
    return [
        _label(run, {key: own.get(key) for key in varied[run.record.learner]})
        for run, own in zip(runs, settings, strict=True)
    ]


def variant_labels(runs: Sequence[RecordedRun]) -> list[str]:
    """Each run's learner and the settings in which it differs from most runs of that learner.

    Shorter than `method_labels` where each run changes one setting of many.
    """
    settings = [settings_of(run.record) for run in runs]
    usual: dict[str, dict[str, str | None]] = {}
    for learner, peers in _by_learner(runs, settings).items():
        keys = sorted({key for peer in peers for key in peer})
        counts = {key: Counter(peer.get(key) for peer in peers) for key in keys}
        usual[learner] = {key: found.most_common(1)[0][0] for key, found in counts.items()}
    labels = []
    for run, own in zip(runs, settings, strict=True):
        items = usual[run.record.learner].items()
        labels.append(_label(run, {k: own.get(k) for k, value in items if own.get(k) != value}))
    return labels


def _by_learner(
    runs: Sequence[RecordedRun], settings: Sequence[dict[str, str]]
) -> dict[str, list[dict[str, str]]]:
    """The settings of all runs of each learner."""
    found: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for run, own in zip(runs, settings, strict=True):
        found[run.record.learner].append(own)
    return found


def _label(run: RecordedRun, settings: dict[str, str | None]) -> str:
    """The learner with settings in brackets."""
    notes = [f"{key.removeprefix('learner.')}={value}" for key, value in settings.items()]
    return f"{run.record.learner} ({', '.join(notes)})" if notes else run.record.learner


def group(runs: Sequence[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """The runs of each method by label, by seed within; methods in order of appearance."""
    groups: defaultdict[str, list[RecordedRun]] = defaultdict(list)
    for label, run in zip(method_labels(runs), runs, strict=True):
        groups[label].append(run)
    return {label: sorted(g, key=lambda run: run.record.seed) for label, g in groups.items()}


def repetitions(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """The complete runs, one per seed: what a mean over seeds may be taken of."""
    first: dict[int, RecordedRun] = {}
    for run in runs:
        if run.record.status == "complete":
            first.setdefault(run.record.seed, run)
    return list(first.values())


@dataclass(frozen=True)
class Method:
    """Runs of one learner with equal settings.

    Attributes:
        index: its place among the methods in order of appearance, which decides its looks.
        label: its name, without unseen characters.
        runs: all of them, in order of seed.
        counted: those that means are taken of: complete, one per seed; the partial run that got
            furthest where no run is complete.
    """

    index: int
    label: str
    runs: Sequence[RecordedRun]
    counted: Sequence[RecordedRun]

    @property
    def learner(self) -> str:
        """The learner's name."""
        return self.runs[0].record.learner

    @property
    def is_reference(self) -> bool:
        """Whether the learner is there to compare with."""
        return self.learner in REFERENCES

    @property
    def is_streamed(self) -> bool:
        """Whether the learner sees one task after another."""
        return self.learner not in ALL_AT_ONCE

    @property
    def is_complete(self) -> bool:
        """Whether the counted runs saw the whole stream."""
        return self.counted[0].record.status == "complete"

    @property
    def num_learned(self) -> int:
        """Tasks learned by the first counted run."""
        return num_learned(self.counted[0].record)

    @cached_property
    def matrices(self) -> np.ndarray:
        """Scores of the counted runs, float64 [n, T, T], NaN where not evaluated."""
        return np.array([run.record.scores for run in self.counted])

    @cached_property
    def matrix(self) -> np.ndarray:
        """Mean over seeds, float64 [T, T]; NaN where a counted run has no score."""
        return self.matrices.mean(axis=0)

    def estimate(self, value: Value) -> Estimate:
        """What the counted runs say of a value."""
        return Estimate.of(value(run.record) for run in self.counted)


def build_methods(runs: Sequence[RecordedRun]) -> list[Method]:
    """Group comparable runs by method, in order of appearance.

    Labels are those of `method_labels`; where one would not fit a line, those of `variant_labels`.
    """
    groups = group(runs)
    short = dict(zip(map(id, runs), variant_labels(runs), strict=True))
    is_long = any(len(label) > LONGEST_LABEL for label in groups)
    methods = []
    for index, (label, members) in enumerate(groups.items()):
        text = visible(short[id(members[0])] if is_long else label, 160)
        furthest = max(members, key=lambda run: num_learned(run.record))
        methods.append(Method(index, text, members, repetitions(members) or [furthest]))
    return methods
