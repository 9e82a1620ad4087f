"""What every learner must do; a new file in stream/learners/ is tested at once."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stream.data.task import Task
from stream.evaluation.evaluate import logits_of
from stream.fingerprint import tensor_digest
from stream.learners import LEARNERS
from stream.learners.base import Learner
from stream.learners.hooks import Hooks
from stream.models.task_model import TaskModel
from stream.record.matrix import ScoreMatrix
from stream.run.stored import StoredCount, count_stored
from stream.training.fit_state import FitReport, Step
from stream.training.flops import count_pass
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_tasks, tiny_encoder
from tests.contract.from_disk import check_goes_on, check_serves_from_disk, evidence, spoiled
from tests.contract.matrix import COMMON
from tests.models.tiny_families import without_dropout

ROWS = 16  # two batches
ONCE = dataclasses.replace(SHORT, epochs=1)
EVERY = pytest.mark.parametrize("name", sorted(LEARNERS))
ISOLATED = pytest.mark.parametrize(
    "name", sorted(n for n in LEARNERS if LEARNERS[n].tags.parameter_isolation)
)
SHARED = pytest.mark.parametrize(
    "name",
    sorted(
        n
        for n, kind in LEARNERS.items()
        if kind.tags.makes_steps  # without them, what tasks share does not change
        and not (kind.tags.parameter_isolation or kind.tags.is_multitask)
    ),
)


def snapshot(state: dict[str, torch.Tensor]) -> dict[str, str]:
    return {name: tensor_digest(tensor) for name, tensor in state.items()}


@dataclass(frozen=True)
class Started:
    """A model right before the steps of the second task, and what looking at all tasks does."""

    trained: set[str]
    parameters: dict[str, str]
    looked: list[np.ndarray]
    """Logits of all tasks, each evaluated twice in a row."""
    trained_after: set[str]
    parameters_after: dict[str, str]
    training: bool


class Watched(Stream):
    """Notes of each task: the work planned and done, the splits read, what serves the first one.

    It is evaluated right before the second task's steps and within every task. `twice` learns
    without a look.
    """

    def __init__(self, learner: Learner, tasks: list[Task]):
        super().__init__(learner, tasks)
        self.planned = [learner.workload(task, SHORT) for task in tasks]
        self.reports: list[FitReport] = []
        self.read: list[set[tuple[str, str]]] = []
        self.first: list[dict[str, str]] = []
        self.stored: list[tuple[tuple[int, int], tuple[int, int]]] = []  # from row to row, whole
        self.started: Started | None = None
        self.ended: dict[str, str] = {}  # parameters after the second task
        self._count = StoredCount()

    def start(self) -> Started:
        """Begin the second task, which `fit` will do again, and look at all of them."""
        self.learner.start(self.tasks[1])
        named = dict(self.model.named_parameters())
        trained, before = set(self.learner.trained_parameters()), snapshot(named)
        looked = [
            logits_of(self.learner, [task], "test", 512, CPU)[0]
            for task in self.tasks
            for _ in range(2)
        ]
        now = dict(self.model.named_parameters())
        after = snapshot({name: now[name] for name in named})
        now_trained = set(self.learner.trained_parameters())
        return Started(trained, before, looked, now_trained, after, self.model.training)

    def run(self) -> ScoreMatrix:
        for index in range(len(self.tasks)):
            if index == 1:
                self.started = self.start()
            self.learn(index)
        return self.matrix

    def learn(self, index: int) -> None:
        original, read = Task.split, set()

        def look(now: Step) -> None:
            if now.number == 1:
                known = set(read)
                for task in self.tasks[: index + 1][-2:]:  # the one before and this one
                    self.digest(task)
                read.intersection_update(known)

        def spy(task: Task, split: str):
            read.add((task.name, split))
            return original(task, split)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Task, "split", spy)
            self.reports.append(fit(self.learner, self.tasks[index], SHORT, look))
        if index == 1:
            self.ended = snapshot(dict(self.model.named_parameters()))
        self.read.append(read)
        self.first.append(snapshot(self.learner.served_state(self.tasks[0].name)))
        learned = self.tasks[: index + 1]
        whole = count_stored(self.learner.stored_states(learned))
        self.stored.append((self._count.of(self.learner, learned), whole))
        self.fill_row(index)


@cache
def whole(name: str) -> Watched:
    """The method on three tasks, learned once; to be read, not to be changed."""
    run = Watched(LEARNERS[name](), made_tasks(ROWS))
    run.run()
    return run


@cache
def left(name: str) -> dict[str, Any]:
    """The evidence of that run."""
    return evidence(whole(name), whole(name).tasks)


@cache
def twice(name: str) -> Stream:
    """The first two of those tasks, learned again without any look between them; to be read."""
    run = Stream(LEARNERS[name](), made_tasks(ROWS))
    for task in run.tasks[:2]:
        fit(run.learner, task, SHORT)
    return run


def unlike_in_name(name: str, precision: str) -> Stream:
    """A stream that draws no masks, of tasks named as methods and modules are; nothing learned."""
    names = ("train", "fusion", "c")  # of torch's own methods and of modules in the encoder
    tasks = [dataclasses.replace(t, name=n) for t, n in zip(made_tasks(ROWS), names, strict=True)]
    learner = LEARNERS[name]()
    if learner.tags.uses_encoder:  # rounding grows with the rate, copies do not
        learner.lr = min(learner.lr, 2e-3)
    run = Stream(learner, tasks, 0, lambda: without_dropout(tiny_encoder()), precision)
    run.model.dropout.p = 0.0
    return run


@cache
def renamed(name: str) -> tuple[Stream, list[str]]:
    """Two tasks of such names, learned in float32; the first one's logits after each of them."""
    run, digests = unlike_in_name(name, "float32"), []
    for task in run.tasks[:2]:
        fit(run.learner, task, ONCE)
        digests.append(run.digest(run.tasks[0]))
    return run, digests


@pytest.fixture
def three_tasks() -> list[Task]:
    return made_tasks(ROWS)


@EVERY
def test_constructor_stores_hyperparameters_and_does_nothing_else(name: str) -> None:
    learner = LEARNERS[name]()
    fields = {f.name for f in dataclasses.fields(learner)}
    assert "lr" in fields
    assert all(not isinstance(v, torch.Tensor) for v in vars(learner).values())
    assert learner.name == name
    assert LEARNERS[name].__doc__


@EVERY
def test_repeats_bit_for_bit_and_differs_with_another_seed(
    name: str, stream: Callable, three_tasks: list[Task]
) -> None:
    """What the first two tasks leave says it; a third one would not say more.

    One of the two runs that are the same was looked at before, between and within its tasks. With
    another seed one task is enough: all that the next ones leave starts from there.
    """
    cells, again = whole(name).matrix.cells, twice(name)
    first = [cell and cell.digest for cell in cells[1][:2]]
    assert first == [again.digest(task) for task in again.tasks[:2]]
    other = stream(LEARNERS[name](), three_tasks, 1)
    fit(other.learner, three_tasks[0], SHORT)
    alone = cells[0][0]
    assert alone is not None
    assert (other.digest(three_tasks[0]) != alone.digest) == LEARNERS[name].tags.seeded


@EVERY
def test_a_task_may_have_any_name(name: str) -> None:
    """Those of torch's own methods and of modules in the encoder, too."""
    run, (before, after) = renamed(name)
    if LEARNERS[name].tags.parameter_isolation:
        assert before == after
    counted = []
    for found in (run, twice(name)):
        trained = found.learner.trained_parameters()
        counted.append(
            [found.learner.num_trained(found.tasks[1]), sum(p.numel() for p in trained.values())]
        )
    if name not in ("lt_sft", "diff_pruning"):  # which entries of all are theirs is learned
        assert counted[0] == counted[1]


@EVERY
def test_evaluation_changes_no_parameter_and_no_requires_grad(name: str) -> None:
    found = whole(name).started  # in the middle of the second task
    assert found is not None
    assert found.parameters_after == found.parameters
    assert found.trained_after == found.trained
    assert found.training
    for one, again in zip(found.looked[::2], found.looked[1::2], strict=True):
        np.testing.assert_array_equal(one, again)


@EVERY
def test_learns_what_it_trains_and_nothing_else(name: str) -> None:
    kind = LEARNERS[name]
    fields = {field.name for field in dataclasses.fields(kind)}
    # A sparse method leaves most entries alone, by choice; these let all of them move.
    dense = {name: 1.0 for name in ("fraction", "sparsity") if name in fields}
    run = Watched(kind(**dense), made_tasks(ROWS)[:2]) if dense else whole(name)
    if dense:
        run.run()
    assert run.started is not None
    trained, before = run.started.trained, run.started.parameters
    changed = {n for n in before if before[n] != run.ended[n]}
    assert changed <= trained
    # Values that only ever see a gradient of zero may stay: unused rows do not make a tensor equal.
    assert trained - changed == set()


@EVERY
def test_served_state_holds_all_that_a_prediction_reads(name: str) -> None:
    """Spoil every tensor outside the served state: the prediction must not move."""
    run = whole(name)
    task = run.tasks[-1]  # its values are in the working copy
    expected = run.digest(task)
    with spoiled(run, run.learner.served_state(task.name)):
        assert run.digest(task) == expected
    assert run.digest(task) == expected


@EVERY
def test_logits_have_the_width_of_their_task_untrained_too(name: str) -> None:
    found = whole(name).started
    assert found is not None
    assert [logits.shape for logits in found.looked[::2]] == [(ROWS, 2), (ROWS, 5), (ROWS, 1)]


@EVERY
def test_a_learned_task_can_be_counted_without_learning(name: str) -> None:
    run = twice(name)
    task = run.tasks[1]
    before = run.digest(task)
    if run.learner.workload(task, SHORT).steps:
        assert count_pass(run.learner, task, 8, CPU) > 0
    assert run.digest(task) == before


@EVERY
def test_fills_hooks_and_nothing_else(name: str) -> None:
    """So whatever the base class says of state, counting and serving holds for every method."""
    kind = LEARNERS[name]
    between = kind.__mro__[1 : kind.__mro__.index(Learner)]
    hooks = {n for n in vars(Hooks) if not n.startswith("__")} - {"lr", "head_lr", "GROUP"}
    assert len(hooks) <= 14
    assert len(between) <= 2
    members = {n for n, member in vars(Learner).items() if not n.startswith("__")}
    filled = {n for above in (kind, *between) for n in vars(above) if n in members}
    fields = {field.name for field in dataclasses.fields(kind)}
    assert filled <= {*fields, "name"}


@EVERY
def test_what_is_stored_is_counted_alike_from_task_to_task_and_whole(name: str) -> None:
    counted = whole(name).stored
    assert len(counted) == 3
    assert [by_task for by_task, _ in counted] == [at_once for _, at_once in counted]


@ISOLATED
def test_what_isolated_tasks_own_is_no_part_of_the_model_while_others_learn(name: str) -> None:
    """So a step takes as long after many tasks, and what they own is in main memory once."""
    run = whole(name)
    inside = {p.untyped_storage().data_ptr() for p in run.model.parameters()}
    modules = run.learner.tags.reads_past_tasks  # which stay where they are read
    for task in run.tasks[:2]:
        own = run.learner.task_state(task.name)
        assert own
        kept = [t for n, t in own.items() if not (modules and n.startswith("encoder."))]
        assert not inside & {tensor.untyped_storage().data_ptr() for tensor in kept}


@EVERY
def test_works_as_much_as_it_says(name: str) -> None:
    """The schedule and the time left rest on it."""
    run = whole(name)
    planned, reports = run.planned, run.reports
    assert [r.steps for r in reports] == [p.steps for p in planned]
    remembers = run.learner.buffer is not None  # stored examples come on top
    assert all(
        r.examples >= p.examples if remembers else r.examples == p.examples
        for r, p in zip(reports, planned, strict=True)
    )


@EVERY
def test_reads_the_training_split_only(name: str) -> None:
    """Of the task that is learned, or of all where all are learned at once; then of no new one."""
    first, *later = whole(name).read
    names = "abc" if LEARNERS[name].tags.is_multitask else "a"
    assert first == {(task, "train") for task in names}
    for met, read in zip(("ab", "abc"), later, strict=True):
        assert read <= {(task, "train") for task in met}


@EVERY
def test_computes_in_bf16_what_it_does_in_float32(name: str) -> None:
    """A copy of the encoder computes: what a method puts into it has to be copied too."""
    (other, _), run = renamed(name), unlike_in_name(name, "bf16")
    for task in run.tasks[:2]:
        fit(run.learner, task, ONCE)
    for task in run.tasks[:2]:
        exact, half = (
            logits_of(found.learner, [task], "test", 512, CPU)[0] for found in (other, run)
        )
        np.testing.assert_allclose(half, exact, atol=0.1 * max(float(np.abs(exact).max()), 0.1))


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - set(COMMON)))  # test_families has those
@pytest.mark.parametrize("family", ["mpnet"])  # the one least like BERT
def test_works_on_another_family(name: str, family: str) -> None:
    learner, tasks = LEARNERS[name](), made_tasks(ROWS // 2)
    model = TaskModel(tiny_encoder(model_type=family), 0)
    learner.attach(model, tasks=tasks, seed=0, pad_id=1)
    fit(learner, tasks[0], ONCE)
    before = snapshot(learner.served_state("a"))
    fit(learner, tasks[1], ONCE)
    (logits,) = logits_of(learner, [tasks[0]], "test", 512, CPU)
    assert np.isfinite(logits).all()
    if learner.tags.parameter_isolation:
        assert snapshot(learner.served_state("a")) == before


@EVERY
def test_comes_back_from_disk_and_serves_the_same(name: str, tmp_path: Path) -> None:
    check_serves_from_disk(whole(name), LEARNERS[name], tmp_path, left(name))


@EVERY
def test_goes_on_bit_for_bit_within_a_task(
    name: str, three_tasks: list[Task], tmp_path: Path
) -> None:
    """A learner that is stopped within its second task, and goes on from disk as a fresh one."""
    check_goes_on(LEARNERS[name], three_tasks, left(name), tmp_path)


@ISOLATED
def test_isolated_learners_keep_every_byte_of_earlier_tasks(name: str) -> None:
    run = whole(name)
    assert run.first[0] == run.first[1] == run.first[2]
    assert run.matrix.memory() == (2, 2)


@pytest.mark.parametrize(
    "name",
    sorted(
        n for n, k in LEARNERS.items() if k.tags.parameter_isolation and not k.tags.reads_past_tasks
    ),
)
def test_order_does_not_change_isolated_tasks(
    name: str, stream: Callable, three_tasks: list[Task]
) -> None:
    """The last one first, and the first one behind it."""
    backwards = stream(LEARNERS[name](), three_tasks[::-1])
    for task in (three_tasks[2], three_tasks[0]):
        fit(backwards.learner, task, SHORT)
    forwards = whole(name).last_digests()
    for task in (three_tasks[2], three_tasks[0]):
        assert backwards.digest(task) == forwards[task.name]


@pytest.mark.parametrize(
    "name", sorted(n for n, kind in LEARNERS.items() if kind.tags.reads_past_tasks)
)
def test_what_serves_a_task_is_of_earlier_ones_too(
    name: str, stream: Callable, three_tasks: list[Task]
) -> None:
    """Another first task gives the second one other logits; later tasks give it the same."""
    other = stream(LEARNERS[name](), [three_tasks[2], three_tasks[1], three_tasks[0]])
    for task in other.tasks[:2]:
        fit(other.learner, task, SHORT)
    second = three_tasks[1]
    assert whole(name).last_digests()["b"] != other.digest(second)
    assert whole(name).last_digests()["b"] == twice(name).digest(second)


@SHARED
def test_shared_learners_change_what_serves_earlier_tasks(name: str) -> None:
    """The memory check can fail: learners that share the encoder do not pass it.

    Those that keep the logits change what serves a task too, but nothing that it uses.
    """
    run = whole(name)
    assert run.first[2] != run.first[0]
    assert run.matrix.memory() == (2, 2 if LEARNERS[name].tags.keeps_logits else 0)
