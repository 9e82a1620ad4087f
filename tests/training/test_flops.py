"""Operations of learning, against sums made by hand."""

from itertools import pairwise

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from stream.data.batching import collate, training_rows
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.frozen import Frozen
from stream.learners.joint import Joint
from stream.learners.lwf import Lwf
from stream.learners.replay import Replay
from stream.training.flops import FUSED, FlopMeter, count_pass
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task

WIDTH, INNER, LAYERS = 16, 32, 2  # of the tiny encoder


def forward_by_hand(rows: int, length: int, outputs: int) -> int:
    """Two operations a multiply-add: 4 projections, attention, feed-forward, then the head."""
    tokens = rows * length
    projections = 2 * tokens * WIDTH * WIDTH * 4
    attention = 2 * rows * length * length * WIDTH * 2
    feedforward = 2 * tokens * WIDTH * INNER * 2
    return LAYERS * (projections + attention + feedforward) + 2 * rows * WIDTH * outputs


def shapes(task) -> list[tuple[int, int]]:
    rows = training_rows(task, SHORT.batch_size, 0, 0)
    batches = [collate([(task, task.split("train"), chosen)], 0) for chosen in rows]
    return [tuple(batch.input_ids.shape) for batch in batches]


def learned(learner, tasks) -> tuple[Stream, list[int]]:
    run, spent = Stream(learner, tasks), []
    for task in tasks:
        meter = FlopMeter(run.model)
        fit(run.learner, task, SHORT, meter=meter)
        spent.append(meter.total)
    return run, spent


def test_fine_tuning_costs_three_forward_passes() -> None:
    task = made_task("a", 2)
    run, (spent,) = learned(Finetune(), [task])
    one_pass = count_pass(run.learner, task, SHORT.batch_size, CPU)
    by_hand = 3 * sum(forward_by_hand(*shape, 2) for shape in shapes(task))
    # The attention's backward pass may repeat its forward products (a fused kernel does).
    assert one_pass == pytest.approx(by_hand, rel=0.1)
    assert spent == pytest.approx(SHORT.epochs * one_pass, rel=0.05)


def test_a_frozen_encoder_costs_its_forward_pass() -> None:
    task = made_task("a", 2)
    run, _ = learned(Frozen(), [task])
    one_pass = count_pass(run.learner, task, SHORT.batch_size, CPU)
    head = sum(2 * rows * WIDTH * 2 for rows, _ in shapes(task))  # backward, to its weights
    by_hand = sum(forward_by_hand(*shape, 2) for shape in shapes(task))
    assert one_pass == by_hand + head  # the idle pooler does not run


def test_replayed_rows_are_spent_but_no_part_of_the_pass() -> None:
    tasks = [made_task("a", 2), made_task("b", 2)]
    run, (first, second) = learned(Replay(replayed=8), tasks)
    passes = [count_pass(run.learner, task, SHORT.batch_size, CPU) for task in tasks]
    assert first == pytest.approx(SHORT.epochs * passes[0], rel=0.05)
    assert second > 1.6 * SHORT.epochs * passes[1]  # as many stored examples as new ones


def test_the_pass_is_without_what_a_method_adds() -> None:
    """The teacher of LwF; and joint training passes over its rows as often as others."""
    task = made_task("a", 2)
    one_pass, spent = set(), set()
    for learner in (Finetune(), Lwf(), Joint()):
        run, (operations,) = learned(learner, [task])
        one_pass.add(count_pass(run.learner, task, SHORT.batch_size, CPU))
        spent.add(operations)
        assert learner.workload(task, SHORT).own_passes == SHORT.epochs
    assert len(one_pass) == len(spent) == 1


def test_what_is_measured_after_the_last_step_is_spent_too() -> None:
    task = made_task("a", 2)
    _, (plain,) = learned(Finetune(), [task])
    run, (spent,) = learned(Ewc(fisher_rows=6), [task])
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        run.learner.fisher(task)
    assert spent == plain + counter.get_total_flops()


def test_counting_learns_nothing() -> None:
    tasks = [made_task("a", 2)]
    run, _ = learned(Finetune(), tasks)
    plain = Stream(Finetune(), tasks)
    plain.learn(0)
    before = torch.random.get_rng_state()
    count_pass(run.learner, tasks[0], SHORT.batch_size, CPU)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(parameter.grad is None for parameter in run.model.parameters())
    assert run.evaluate(tasks[0]).digest == plain.evaluate(tasks[0]).digest


def test_steps_of_equal_shapes_count_for_their_own_head() -> None:
    few, many = made_task("few", 2), made_task("many", 5)
    learner = Finetune()
    Stream(learner, [few, many])
    rows = training_rows(few, 4, 0, 0)[0]

    def counted(*tasks) -> int:
        meter = FlopMeter(learner.model)
        for task in tasks:
            learner.model.add_head(task)
            split = few.split("train")
            with meter.counting(batch := collate([(task, split, rows)], 0)):
                learner.loss(batch).backward()
        return meter.total

    assert counted(few, many) == counted(few) + counted(many) == counted(many, few)
    assert counted(few) != counted(many)


def test_steps_of_equal_shapes_count_for_what_is_trained_then() -> None:
    """The backward pass of a frozen encoder is cheaper: the second half of a method may be."""
    task = made_task("a", 2)
    run = Stream(Finetune(), [task])
    run.learner.start(task)
    rows = training_rows(task, 4, 0, 0)[0]
    batch, meter = collate([(task, task.split("train"), rows)], 0), FlopMeter(run.model)
    totals = [0]
    for trained in (True, False, True):
        run.model.encoder.requires_grad_(trained)
        with meter.counting(batch):
            run.learner.loss(batch).backward()
        totals.append(meter.total)
    spent = [after - before for before, after in pairwise(totals)]
    assert spent[0] == spent[2] > 2 * spent[1] > 0
