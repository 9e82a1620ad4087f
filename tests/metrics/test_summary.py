"""The metrics of one run by name: every name always, null by rule, nothing changed."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest

from stream.metrics import (
    METRICS,
    Evidence,
    Flops,
    ProbePoint,
    Storage,
    average_score,
    forward_transfer,
    summarize,
)
from tests.metrics.worked_example import B, R

SEEN = np.where(np.tri(4, dtype=bool), R, np.nan)
NAMES = {
    *METRICS,
    *("fwt", "min_acc", "wc_acc", "wf_10", "wp_10", "lca_10"),
    *("nfr", "nfi", "nfr_step", "nfi_step", "ms", "sss", "ce"),
    *("representation_forgetting", "head_misalignment"),
}


def whole_run() -> dict:
    right, wrong = np.array([True, True]), np.array([True, False])
    return {
        "baseline": B,
        "probe": [
            ProbePoint(task, step, [0.5 + step / 100] * (task + 1))
            for task in range(4)
            for step in range(11)
        ],
        "correct": [[wrong if i == 3 and j == 0 else right for j in range(4)] for i in range(4)],
        "flops": Flops(train=[30] * 4, one_pass=[10] * 4, epochs=[3] * 4),
        "linear_probes": ([0.9, 0.8, 0.7, 0.6], [0.8, 0.8, 0.6, 0.7]),
        "storage": Storage(model=[100, 110, 120, 130], buffer=[0, 5, 10, 15], data=150),
    }


def test_the_scores_alone() -> None:
    """Every name is there; what this run did not evaluate is null, not an error."""
    found = summarize(SEEN)
    assert found.keys() == NAMES
    known = {name for name, value in found.items() if value is not None}
    assert known == METRICS.keys() - {"fwt_diaz"}
    assert found["forgetting"] == pytest.approx(0.15)


def test_a_run_with_all_there_is() -> None:
    run = whole_run()
    before = copy.deepcopy(run)
    matrix = R.copy()
    found = summarize(matrix, Evidence(**run))
    assert found.keys() == NAMES
    assert None not in found.values()
    assert found["fwt"] == pytest.approx(0.19333, abs=5e-6)
    assert found["min_acc"] == pytest.approx(0.51)
    assert found["wc_acc"] == pytest.approx(0.6 / 4 + 0.51 * 3 / 4)
    assert found["lca_10"] == pytest.approx(0.55)
    assert found["wf_10"] == pytest.approx((3 * 0.09) / 4)  # back from .60 to .51 at each new task
    assert found["wp_10"] == pytest.approx(0.09)
    assert found["nfr"] == pytest.approx(0.5 / 3)
    assert found["nfi"] == 1.0
    assert found["nfr_step"] == pytest.approx(0.5 / 6)
    assert found["nfi_step"] == 1.0
    assert found["representation_forgetting"] == pytest.approx(0.2 / 3)
    assert found["head_misalignment"] == pytest.approx((0.8 + 0.8 + 0.6 + 0.7 - R[3].sum()) / 4)
    assert found["ms"] == pytest.approx(np.mean([100 / m for m in (100, 110, 120, 130)]))
    assert found["sss"] == pytest.approx(1 - 7.5 / 150)
    assert found["ce"] == 1.0
    assert np.array_equal(matrix, R)
    assert str(run) == str(before)


def test_results_are_plain_json_values() -> None:
    assert json.loads(json.dumps(summarize(R, Evidence(**whole_run())), allow_nan=False))


def test_no_row_one_row_and_some_rows() -> None:
    assert set(summarize(np.full((3, 3), np.nan)).values()) == {None}
    one = SEEN.copy()
    one[1:] = np.nan
    found = summarize(one, Evidence(B, whole_run()["probe"]))
    assert found["average_score"] == found["learning_score"] == found["retained_score"] == 0.9
    assert found["wc_acc"] == pytest.approx(0.6)
    assert [found[name] for name in ("bwt", "fwt", "forgetting", "min_acc")] == [None] * 4
    some = R.copy()
    some[3:] = np.nan
    assert summarize(some, Evidence(B)) == summarize(R[:3, :3], Evidence(B[:3]))


def test_rule_for_what_a_run_did_not_evaluate() -> None:
    """Null in the summary where the metric by itself raises; without a hole both agree."""
    assert summarize(SEEN, Evidence(B))["fwt"] is None
    with pytest.raises(ValueError, match="not evaluated"):
        forward_transfer(SEEN, B)
    assert summarize(R, Evidence(B))["fwt"] == forward_transfer(R, B)
    every_second = [point for point in whole_run()["probe"] if point.step % 2 == 0]
    found = summarize(SEEN, Evidence(probe=every_second))
    assert found["lca_10"] is None
    assert found["min_acc"] == pytest.approx(0.52)
    assert summarize(SEEN, Evidence(probe=[]))["wc_acc"] is None


def test_a_hole_costs_only_the_metrics_that_read_it() -> None:
    holes = SEEN.copy()
    holes[2, 0] = np.nan
    found = summarize(holes)
    assert found["average_score"] == average_score(SEEN)
    assert found["bwt"] == pytest.approx(-0.15)
    assert [found[name] for name in ("a_diaz", "bwt_diaz", "forgetting")] == [None] * 3


def test_arguments_that_do_not_fit_are_errors_here_too() -> None:
    with pytest.raises(ValueError, match="4 tasks"):
        summarize(R, Evidence(baseline=[0.1]))
    with pytest.raises(ValueError, match="above 0"):
        summarize(R, Evidence(storage=Storage([0], [0], 1)))


def test_the_documentation_lists_every_key_and_no_other() -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = text.split("## Metrics of one run")[1].split("## Metrics that need other runs")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(NAMES)
