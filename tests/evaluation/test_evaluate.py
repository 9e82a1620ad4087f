"""Cells: scores, digests and the record of which examples were right."""

import base64

import numpy as np
import pytest

from stream.evaluation.evaluate import correctness, digest, logits_of
from stream.learners.finetune import Finetune
from tests.builders import CPU, Stream, made_task


def test_stored_correctness_gives_back_the_accuracy(three_tasks) -> None:
    run = Stream(Finetune(), three_tasks)
    run.finish()
    for task in three_tasks[:2]:
        cell = run.evaluate(task)
        assert cell.correct is not None
        packed = np.frombuffer(base64.b64decode(cell.correct), np.uint8)
        right = np.unpackbits(packed, count=16)
        assert right.mean() == pytest.approx(cell.score)
        (logits,) = logits_of(run.learner, [task], "test", 512, CPU)
        assert cell.digest == digest(logits)
        expected = [max(range(len(row)), key=row.__getitem__) for row in logits.tolist()]
        assert (right == (np.array(expected) == task.split("test").labels)).all()
    assert run.evaluate(three_tasks[2]).correct is None


def test_correctness_of_known_logits() -> None:
    logits = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 0, 0, 0, 0, 1]]
    labels = np.array([0, 1, 1, 0, 0, 0, 0, 0, 1])
    found = correctness(made_task("a", 3), logits, labels)
    assert base64.b64decode(found or "") == bytes([0b11011111, 0b10000000])
