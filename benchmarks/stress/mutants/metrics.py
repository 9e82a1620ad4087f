"""Metrics of the score matrix (`stream/metrics/`)."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import METRICS

MUTANTS = (
    *changes(
        "stream/metrics/scores.py",
        (METRICS,),
        ("matrix[k - 1, :k]", "matrix[k - 1, : k - 1]"),
        ("diagonal=True", "diagonal=False"),
    ),
    *changes(
        "stream/metrics/transfer.py",
        (METRICS,),
        ("sign(direction) * (retained - learned)", "sign(direction) * (learned - retained)"),
        ("max(change, 0.0)", "change"),
    ),
    *changes(
        "stream/metrics/retention.py",
        (METRICS,),
        ("0.0 - change", "change"),
        ("if k < 2:", "if k < 1:"),
    ),
    *changes(
        "stream/metrics/references.py",
        (METRICS,),
        ("if mean > 0 else None", "if mean != 0 else None"),
        ("counted = room > 0", "counted = room >= 0"),
        (").mean()) - 1, int", ").mean()), int"),
        ("sign(direction) * gaps.mean()", "gaps.mean()"),
    ),
    *changes(
        "stream/metrics/within_task.py",
        (METRICS,),
        ("score_curve(points, j, j + 1, k)", "score_curve(points, j, j, k)"),
        ("range(1, min(window, len(scores)))", "range(1, min(window + 1, len(scores)))"),
    ),
    *changes(
        "stream/metrics/flips.py",
        (METRICS,),
        ("errors = wrong.sum(axis=1)", "errors = (~old).sum(axis=1)"),
        ("flips / new.shape[1]", "flips / new.shape[0]"),
        ("(examples + 7) // 8", "examples // 8"),
    ),
    *changes(
        "stream/metrics/cost.py",
        (METRICS,),
        ("one_pass * epsilon / spent", "one_pass / spent"),
        ("if (epsilon < 1).any()", "if (epsilon < 0).any()"),
    ),
    *changes(
        "stream/metrics/cells.py",
        (METRICS,),
        ("scores[: rows_done(matrix)], what)", "scores, what)"),
        ("0 if diagonal else -1", "0 if diagonal else -2"),
    ),
    *changes(
        "stream/metrics/catalogue.py",
        (METRICS,),
        ('"bwt": backward_transfer,', '"bwt": backward_transfer_diaz,'),
        ("WINDOW = 10", "WINDOW = 5"),
    ),
)
