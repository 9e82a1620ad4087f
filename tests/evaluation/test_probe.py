"""The probe: what it sees is what evaluation would see, and it changes nothing."""

import numpy as np
import pytest
import torch

from stream.config.run import EvaluationConfig, ProbeConfig
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.evaluation.probe import Probe, planned_evaluations, sampled
from stream.learners import LEARNERS
from stream.learners.adapter import Adapter
from stream.learners.finetune import Finetune
from stream.record.run_record import ProbeRecord
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task

LOOKED_AT = ("adapter", "replay", "prototype", "l2p", "hat", "joint")
"""Isolated weights, stored rows, own logits, a second pass, gates by step, all tasks at once.

The probe is the same code for all; tests/contract/test_learners.py evaluates every learner while it
learns.
"""
EVALUATION = EvaluationConfig(batch_tokens=512)


def made_probe(tasks, every: int = 2, rows: int = 6) -> Probe:
    samples = [sampled(task, "test", rows, 0) for task in tasks]
    return Probe(EVALUATION, samples, ProbeRecord(every=every, rows=rows))


def test_a_sample_holds_rows_of_the_task_and_depends_on_its_name() -> None:
    task, other = made_task("a", rows=30), made_task("b", rows=30)
    drawn = sampled(task, "test", 7, 0).split("test")
    everything = {tuple(task.split("test").select(np.array([i])).token_ids) for i in range(30)}
    rows = [tuple(drawn.select(np.array([i])).token_ids) for i in range(7)]
    assert set(rows) <= everything
    assert len(set(rows)) == 7
    again = sampled(task, "test", 7, 0).split("test")
    assert again.token_ids.tolist() == drawn.token_ids.tolist()
    assert sampled(task, "test", 7, 1).split("test").token_ids.tolist() != drawn.token_ids.tolist()
    assert len(sampled(other, "test", 99, 0).split("test")) == 30


@pytest.mark.parametrize("name", LOOKED_AT)
def test_looking_changes_nothing(name: str) -> None:
    tasks = [made_task("a", 3, 16), made_task("b", None, 16)]
    plain, probed = Stream(LEARNERS[name](), tasks), Stream(LEARNERS[name](), tasks)
    probe = made_probe(tasks, every=1)
    for index, task in enumerate(tasks):
        fit(plain.learner, task, SHORT)
        probe.look(probed.learner, index, 0, CPU)
        fit(
            probed.learner,
            task,
            SHORT,
            lambda step, index=index: probe.look(probed.learner, index, step.number, CPU) and None,
        )
    for task in tasks:
        assert plain.evaluate(task).digest == probed.evaluate(task).digest


@pytest.mark.parametrize("learner", [Finetune, Adapter])
def test_scores_are_those_of_the_sample(learner, three_tasks) -> None:
    run = Stream(learner(), three_tasks)
    run.finish()
    probe = made_probe(three_tasks)
    assert probe.look(run.learner, 2, 4, CPU) == 18
    (point,) = probe.record.points
    expected = [run.evaluate(sample).score for sample in probe.samples]
    assert point.scores == pytest.approx(expected, abs=1e-6)
    assert (point.task, point.step) == (2, 4)


def test_one_pass_over_all_tasks_gives_each_its_own_logits(three_tasks) -> None:
    run = Stream(Finetune(), three_tasks)
    run.finish()
    assert run.learner.serves_together
    assert not Stream(Adapter(), []).learner.serves_together
    together = logits_of(run.learner, three_tasks, "test", 64, CPU)
    for task, logits in zip(three_tasks, together, strict=True):
        (alone,) = logits_of(run.learner, [task], "test", 64, CPU)
        assert logits.shape == (16, task.num_outputs)
        np.testing.assert_allclose(logits, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("steps", "every", "looks"), [(6, 2, 4), (7, 2, 5), (3, 10, 2), (4, 1, 5)])
def test_the_plan_counts_every_look(steps: int, every: int, looks: int) -> None:
    probe = made_probe([], every)
    due = [step for step in range(1, steps + 1) if probe.is_due(step, steps)]
    assert 1 + len(due) == looks  # the first look comes before the first step
    tasks = [made_task("a", rows=30), made_task("b", rows=4)]
    planned = planned_evaluations(ProbeConfig(every, 6), tasks, "test", [steps, steps])
    assert planned == looks * 6 + looks * (6 + 4)


def test_without_a_period_nothing_is_planned() -> None:
    assert planned_evaluations(ProbeConfig(), [made_task("a")], "test", [5]) == 0


def test_bad_settings() -> None:
    with pytest.raises(UserError, match=r"probe.every must be at least 1, got 0"):
        ProbeConfig(every=0)
    with pytest.raises(UserError, match=r"probe.rows must be at least 2, got 1"):
        ProbeConfig(every=1, rows=1)


def test_looking_restores_training_mode(three_tasks) -> None:
    run = Stream(Adapter(), three_tasks)
    run.learn(0)
    run.model.train()
    made_probe(three_tasks).look(run.learner, 0, 1, CPU)
    assert run.model.training
    assert not torch.is_inference_mode_enabled()
