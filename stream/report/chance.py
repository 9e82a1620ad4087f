"""What guessing scores: a line to hold scores against.

T is the number of tasks.
"""

import math

from stream.record.run_record import RunRecord

UNRELATED = 0.0  # a correlation with labels that the guesses do not know


def chance_scores(record: RunRecord) -> list[float]:
    """Return the expected score of guessing uniformly among a task's labels, for the T tasks.

    1/K for accuracy with K labels, 0 for correlations (Matthews, Spearman, Pearson). NaN where
    the record does not decide it: F1 and spans depend on how the labels are distributed.
    """
    return [
        _chance(metric, len(record.labels.get(name) or ()))
        for name, metric in zip(record.order, record.metric_names, strict=True)
    ]


def _chance(metric: str, num_labels: int) -> float:
    if metric in ("matthews_correlation", "spearman", "pearson"):
        return UNRELATED
    return 1 / num_labels if metric == "accuracy" and num_labels else math.nan
