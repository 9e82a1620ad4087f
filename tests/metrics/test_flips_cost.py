"""Negative flips and cost: hand computation, scikit-learn's confusion matrix, formulas."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from stream.metrics import (
    Flops,
    NotEvaluatedError,
    computational_efficiency,
    correct_cells,
    decode_correct,
    mean_negative_flips,
    model_size_efficiency,
    samples_storage_efficiency,
)

EXAMPLES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=bool)


def encode(correct: np.ndarray) -> str:
    return base64.b64encode(np.packbits(correct).tobytes()).decode()


THREE_TASKS = [
    [flags(1, 1, 0, 0), None, None],
    [flags(1, 0, 1, 0), flags(1, 1), None],
    [flags(0, 1, 1, 0), flags(1, 1), flags(0, 1, 0)],
]


def test_decoding() -> None:
    assert decode_correct("oA==", 4).tolist() == [True, False, True, False]
    assert decode_correct("/4A=", 9).tolist() == [True] * 9
    assert decode_correct("", 0).tolist() == []
    for text, examples, message in (
        ("oA!==", 4, "not base64"),
        ("oA==", 9, "1 bytes of correctness do not hold 9 examples"),
        ("/4A=", 8, "2 bytes of correctness do not hold 8 examples"),
    ):
        with pytest.raises(ValueError, match=message):
            decode_correct(text, examples)


def test_cells_of_results_json() -> None:
    texts = [[encode(flags(1, 0)), None], [encode(flags(1, 1)), None]]  # the second: a regression
    found = correct_cells(texts, [2, 7])
    assert found[0][1] is None
    assert found[1][1] is None
    assert np.array_equal(found[0][0], flags(1, 0))
    assert np.array_equal(found[1][0], flags(1, 1))


@given(EXAMPLES)
def test_flips_are_a_confusion_of_old_and_new(pairs: list[tuple[bool, bool]]) -> None:
    old, new = (np.array(side) for side in zip(*pairs, strict=True))
    table = confusion_matrix(old, new, labels=[False, True])
    lost, gained, wrong = table[1, 0], table[0, 1], table[:, 0].sum()
    rate, impact = mean_negative_flips([[old, None], [new, new]], 2)
    assert rate == pytest.approx(lost / len(pairs))
    assert impact == (pytest.approx(lost / wrong) if wrong else None)
    # The change of accuracy is what was gained less what was lost.
    assert new.mean() - old.mean() == pytest.approx(gained / len(pairs) - rate, abs=1e-12)
    assert np.array_equal(decode_correct(encode(old), len(pairs)), old)


def test_flips_since_a_task_was_learned_and_at_each_step() -> None:
    # Only task 0 has errors at the end.
    assert mean_negative_flips(THREE_TASKS, 3) == pytest.approx(((1 / 4 + 0) / 2, 1 / 2))
    steps = mean_negative_flips(THREE_TASKS, 3, "previous")
    assert steps == pytest.approx(((1 / 4 + 1 / 4 + 0) / 3, 1 / 2))
    assert mean_negative_flips(THREE_TASKS, 2)[0] == pytest.approx(1 / 4)


def test_equal_accuracy_can_hide_flips() -> None:
    cells = [[flags(1, 1, 0, 0), None], [flags(0, 1, 1, 0), flags(1)]]
    assert cells[0][0].mean() == cells[1][0].mean()
    assert mean_negative_flips(cells, 2)[0] == 0.25


def test_flips_where_undefined() -> None:
    for k in (0, 1):
        assert mean_negative_flips(THREE_TASKS, k) == (None, None)
    regression = [[None, None], [None, flags(1)]]
    assert mean_negative_flips(regression, 2) == (None, None)
    perfect = [[flags(1, 1), None], [flags(1, 1), flags(1)]]
    assert mean_negative_flips(perfect, 2) == (0.0, None)
    with pytest.raises(NotEvaluatedError, match="correctness of task 0"):
        mean_negative_flips([[flags(1), None], [None, flags(1)]], 2)
    with pytest.raises(ValueError, match="the same examples"):
        mean_negative_flips([[flags(1, 0), None], [flags(1), flags(1)]], 2)


def test_model_size() -> None:
    assert model_size_efficiency([]) is None
    assert model_size_efficiency([100]) == 1.0
    assert model_size_efficiency([100, 100, 100]) == 1.0
    assert model_size_efficiency([100, 50]) == 1.0  # at most 1
    # continuum 1.2.7, get_model_size_growth([[100], [110], [120], [130]])
    assert model_size_efficiency([100, 110, 120, 130]) == pytest.approx(0.8779137529137529)
    with pytest.raises(ValueError, match="model size must be above 0"):
        model_size_efficiency([100, 0])


def test_samples_storage() -> None:
    assert samples_storage_efficiency([], 10) is None
    assert samples_storage_efficiency([0, 0, 0], 30) == 1.0
    everything = [10.0 * (i + 1) for i in range(26)]
    assert samples_storage_efficiency(everything, 260) == pytest.approx(1 - 27 / 52)
    assert samples_storage_efficiency([100], 50) == 0.0  # never below 0
    with pytest.raises(ValueError, match="training data must be above 0"):
        samples_storage_efficiency([1], 0)
    with pytest.raises(ValueError, match="buffer must not be negative"):
        samples_storage_efficiency([-1], 10)


def test_computational_efficiency() -> None:
    plain = Flops(train=[30, 90], one_pass=[10, 30], epochs=[3, 3])
    assert computational_efficiency(plain) == 1.0
    replayed = Flops(train=[30, 180], one_pass=[10, 30], epochs=[3, 3])
    assert computational_efficiency(replayed) == pytest.approx((1 + 0.5) / 2)
    assert computational_efficiency(Flops([], [], [])) is None
    assert computational_efficiency(Flops([0], [0], [1])) is None  # nothing was trained
    assert computational_efficiency(Flops([10], [20], [1])) == 1.0  # at most 1
    with pytest.raises(ValueError, match="flops of 2, 1 and 2 tasks do not match"):
        computational_efficiency(Flops([1, 2], [1], [1, 1]))
    with pytest.raises(ValueError, match=r"epsilon is at least 1, not 0\.5"):
        computational_efficiency(Flops([1], [1], [0.5]))
