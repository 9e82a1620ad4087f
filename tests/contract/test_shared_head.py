"""What every learner must do with one head for all tasks; a new file in stream/learners/ is tested.

Three tiny tasks: two classes, three others, and two that are those of the first.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stream.data.shared_head import with_shared_head
from stream.data.task import SHARED_HEAD, Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.learners import LEARNERS
from stream.models.task_model import HEAD_STD
from stream.run.accounting import count_stored
from stream.seeding import torch_generator
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task
from tests.contract.from_disk import check_goes_on, check_serves_from_disk, evidence, spoiled

ABLE = sorted(name for name, kind in LEARNERS.items() if kind.tags.shares_head)
SHARING = pytest.mark.parametrize("name", ABLE)
ONCE = replace(SHORT, epochs=1)
MET = [2, 5, 5]
WIDTHS: dict[str, list[int]] = {}  # of the first task's logits after each task
STORED: dict[str, list[int]] = {}  # numbers that are stored after each task
WIDTH = 16


def tasks_of(*names: str) -> list[Task]:
    """The tasks in an order; ``a`` and ``c`` share their labels."""
    made = {"a": made_task("a", 2, 16), "b": made_task("b", 3, 16), "c": made_task("c", 2, 16)}
    return with_shared_head([made[name] for name in names], [["a", "c"]])


@cache
def whole(name: str) -> Stream:
    """The method on the three tasks, learned once; to be read, not to be changed."""
    run = Stream(LEARNERS[name](), tasks_of("a", "b", "c"))
    WIDTHS[name], STORED[name] = [], []
    for index, task in enumerate(run.tasks):
        fit(run.learner, task, SHORT)
        STORED[name].append(count_stored(run.learner.stored_states(run.tasks[: index + 1]))[0])
        (logits,) = logits_of(run.learner, [run.tasks[0]], "test", 512, CPU)
        WIDTHS[name].append(logits.shape[1])
    return run


@cache
def left(name: str) -> dict[str, Any]:
    """The evidence of that run."""
    return evidence(whole(name), whole(name).tasks)


def first_row(name: str) -> torch.Tensor:
    """The first weights of a class, by torch's own function."""
    row = torch.empty(WIDTH)
    torch.nn.init.trunc_normal_(
        row, 0.0, HEAD_STD, -2 * HEAD_STD, 2 * HEAD_STD, torch_generator(0, "head", name)
    )
    return row


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - set(ABLE)))
def test_isolated_learners_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"cannot share one head.*scenario=inferred"):
        Stream(LEARNERS[name](), tasks_of("a", "b"))


@SHARING
def test_it_chooses_among_the_classes_met_so_far(name: str) -> None:
    """Classes to come have no logit while it answers; a reference that sees all tasks has all.

    So earlier tasks do not keep their logits, whatever else a method isolates.
    """
    assert list(whole(name).model.heads) == [SHARED_HEAD]
    assert not whole(name).learner.tags.perfect_memory
    assert WIDTHS[name] == ([5, 5, 5] if LEARNERS[name].tags.is_multitask else MET)


@SHARING
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_class_starts_from_its_name_alone_and_not_before_it_is_met(name: str, order: str) -> None:
    tasks = tasks_of(*order)
    run = Stream(LEARNERS[name](), tasks)
    untrained = [run.evaluate(task).score for task in tasks]  # all classes, by their first weights
    assert not run.model.heads
    assert all(0 <= score <= 1 for score in untrained)
    fit(run.learner, tasks[0], ONCE)
    learned = run.model.head(SHARED_HEAD)
    before = learned.weight.detach().clone()
    met = 5 if LEARNERS[name].tags.is_multitask else len(tasks[0].spec.labels)
    assert len(before) == met
    learned.train()
    probabilities = learned(torch.randn(4, WIDTH)).softmax(1)
    assert probabilities.shape == (4, 5)
    assert (probabilities[:, met:] == 0).all()
    if met < 5:
        assert run.evaluate(tasks[1]).score == 0  # none of its classes can be chosen
        run.learner.start(tasks[1])
        now = run.model.head(SHARED_HEAD).weight.detach()
        assert torch.equal(now[:met], before)
        for row, place in zip(now[met:], range(met, 5), strict=True):
            assert torch.equal(row, first_row(tasks[1].shared.names[place]))


@SHARING
def test_the_head_is_stored_once_and_its_rows_as_they_are_met(name: str) -> None:
    """Beside heads of their own, which are as large in all, but for what a method says of it."""
    whole(name)
    run = Stream(LEARNERS[name](), [made_task("a", 2, 16), made_task("b", 3, 16)])
    own = []
    for index, task in enumerate(run.tasks):
        fit(run.learner, task, ONCE)
        own.append(count_stored(run.learner.stored_states(run.tasks[: index + 1]))[0])
    row = WIDTH + 1
    # Of each row: its importance and what anchors pull; the sums of its class.
    copies = {"ewc": (1, 2), "si": (1, 1), "prototype": (1, 1)}.get(name, (0, 0))
    extra = [copies[0] * 2 * row, copies[1] * 5 * row]
    if name == "ogd":  # 16 directions a task, along the rows that were met when they were stored
        extra = [16 * 2 * row, 16 * 2 * row + 16 * 5 * row]
    if name == "derpp":
        extra[1] += 16 * (5 - 3)  # logits of the second task's rows, over all five classes
    if LEARNERS[name].tags.is_multitask:
        extra[0] += 3 * row  # it met the second task's classes with the first
    found = [s - k for s, k in zip(STORED[name][:2], own, strict=True)]
    assert found == extra


@SHARING
def test_served_state_holds_all_that_a_prediction_reads(name: str) -> None:
    run = whole(name)
    expected = [run.digest(task) for task in run.tasks]
    served = set(run.learner.served_state("a"))
    for task in run.tasks[1:]:
        assert served == set(run.learner.served_state(task.name))  # served without its task
    with spoiled(run, served):
        assert [run.digest(task) for task in run.tasks] == expected
    assert [run.digest(task) for task in run.tasks] == expected


@SHARING
def test_the_answer_does_not_depend_on_the_task_that_is_asked(name: str) -> None:
    """The rows of one task, served as another's."""
    run = whole(name)
    first, second, _ = run.tasks
    as_second = replace(second, splits=first.splits)
    logits = [logits_of(run.learner, [t], "test", 512, CPU)[0] for t in (first, as_second)]
    np.testing.assert_array_equal(*logits)


@SHARING
def test_comes_back_from_disk_and_serves_the_same(name: str, tmp_path: Path) -> None:
    check_serves_from_disk(whole(name), LEARNERS[name], tmp_path, left(name))


@SHARING
def test_goes_on_bit_for_bit_within_a_task(name: str, tmp_path: Path) -> None:
    check_goes_on(LEARNERS[name], tasks_of("a", "b", "c"), left(name), tmp_path)
