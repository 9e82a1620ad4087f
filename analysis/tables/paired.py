"""Paired differences: each method against one of them, seed by seed on the same stream.

What the seed decides for both (order of examples, samples, first weights) cancels in a pair. The
tasks of a run stay together: the interval is that of `analysis.runs.estimate` over the seeds.
"""

from collections.abc import Sequence

from analysis.runs.collect import RecordedRun
from analysis.runs.estimate import CONFIDENCE, INTERVAL, Estimate
from analysis.runs.methods import repetitions
from analysis.runs.names import group, method_names
from analysis.tables.text_table import Row, TextTable
from stream.errors import UserError, unknown
from stream.formatting import DASH, signed
from stream.record.method_name import chosen_learner

MEASURES = {
    "average_score": "average\nscore",
    "learning_score": "learning\nscore",
    "forgetting": "forgetting",
}


def choose_method(runs: Sequence[RecordedRun], wanted: str) -> str:
    """The label of the method that is meant: by label, name, learner or preset.

    Raises:
        UserError: no such method, or several.
    """
    labels, names = group(runs), method_names(runs).by_label
    meant = [label for label in labels if wanted in (label, names[label])]
    if len(meant) == 1:
        return meant[0]
    of_learner = [label for label, members in labels.items() if _is_called(members[0], wanted)]
    if len(of_learner) > 1:
        several = ", ".join(names[label] for label in of_learner)
        raise UserError(f"--against {wanted} is several methods: {several}")
    if not of_learner:
        raise unknown("method", wanted, names.values())
    return of_learner[0]


def _is_called(run: RecordedRun, wanted: str) -> bool:
    """Whether the learner of a run, or the preset of it that was chosen, has that name."""
    return wanted in (run.record.learner, chosen_learner(run.record))


def differences(runs: Sequence[RecordedRun], against: str) -> dict[str, dict[str, Estimate]]:
    """Every other method's differences from ``against`` by label and measure.

    Args:
        runs: runs of one stream; complete ones count, one per seed.
        against: a method's label.
    """
    groups = {label: repetitions(members) for label, members in group(runs).items()}
    base = {run.record.seed: run.record.metrics for run in groups.pop(against)}
    found = {}
    for label, members in groups.items():
        own = {run.record.seed: run.record.metrics for run in members}
        found[label] = {
            name: Estimate.of(
                [
                    mine - other
                    for seed in sorted(own.keys() & base.keys())
                    for mine, other in [(own[seed][name], base[seed][name])]
                    if mine is not None and other is not None
                ]
            )
            for name in MEASURES
        }
    return found


def difference_table(runs: Sequence[RecordedRun], wanted: str) -> TextTable:
    """The table of `differences`, in percentage points.

    Raises:
        UserError: ``wanted`` is no method, or several.
    """
    against, names = choose_method(runs, wanted), method_names(runs)
    short = names.by_label
    found = differences(runs, against)
    rows = []
    for label, by_measure in found.items():
        pairs = min(difference.n for difference in by_measure.values())
        shown = [show_difference(difference) for difference in by_measure.values()]
        rows.append(Row([short[label], str(pairs)], shown))
    notes = [
        f"Method minus {short[against]}, paired by seed, in percentage points: mean and {INTERVAL} "
        "over the n seeds that both have. Positive forgetting: forgets more.",
        *names.notes,
    ]
    if any(d.n < 2 for by_measure in found.values() for d in by_measure.values()):
        notes.append(f"{DASH}: one pair gives no interval, none no difference.")
    if len(found) > 1:
        notes.append(_each_by_itself(len(MEASURES) * len(found)))
    header = ["learner", "n", *MEASURES.values()]
    return TextTable(f"Differences from {short[against]}", header, 2, [rows], notes)


def _each_by_itself(number: int) -> str:
    missed = (1 - CONFIDENCE) * number
    return (
        f"Each of the {number} intervals holds by itself with {CONFIDENCE:.0%}: about {missed:.1f} "
        "of so many miss by chance."
    )


def show_difference(difference: Estimate) -> str:
    """A difference with its sign, and the bounds of its interval.

    >>> show_difference(Estimate.of([0.01, 0.012, 0.014]))
    '+1.2 [+0.7, +1.7]'
    """
    if not difference.n:
        return DASH
    mean = signed(difference.mean)
    if difference.interval is None:
        return f"{mean} [{DASH}]"
    low, high = difference.interval
    return f"{mean} [{signed(low)}, {signed(high)}]"
