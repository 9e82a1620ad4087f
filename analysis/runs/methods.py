"""Methods: which runs repeat one learner with equal settings, and what they say together.

T is the number of tasks, n that of the counted runs of a method. Scores are fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import Estimate
from analysis.runs.names import group, method_names
from analysis.runs.values import Value, num_learned

REFERENCES = ("joint", "pals", "independent", "majority", "tfidf", "frozen")
ALL_AT_ONCE = ("joint", "pals")  # references that learn all tasks together, not as a stream


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
        label: its name, the same in tables, figures and the report (`analysis.runs.names`).
        settings: what a numbered name stands for; else empty.
        runs: all of them, in order of seed.
        counted: those that means are taken of: complete, one per seed; the partial run that got
            furthest where no run is complete.
    """

    index: int
    label: str
    settings: str
    runs: Sequence[RecordedRun]
    counted: Sequence[RecordedRun]

    @property
    def full_label(self) -> str:
        """The name, with the settings that a numbered one stands for."""
        return f"{self.label} ({self.settings})" if self.settings else self.label

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
    """Group comparable runs by method, in order of appearance."""
    groups, names = group(runs), method_names(runs)
    methods = []
    for index, (label, members) in enumerate(groups.items()):
        furthest = max(members, key=lambda run: num_learned(run.record))
        counted = repetitions(members) or [furthest]
        methods.append(
            Method(index, names.by_label[label], names.settings.get(label, ""), members, counted)
        )
    return methods
