"""The loop against a plain hand-written one, the schedule against the paper, and divergence."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from stream.config.run import TrainingConfig
from stream.data.batch import Batch
from stream.data.batching import training_rows
from stream.data.task import Task
from stream.errors import TrainingDivergedError
from stream.learners.adapter import Adapter
from stream.learners.base import Learner
from stream.learners.finetune import Finetune
from stream.learners.workload import planned_work
from stream.models.task_model import TaskModel
from stream.seeding import derive_seed, torch_randomness
from stream.training.fit_state import FitReport, Step
from stream.training.flops import FlopMeter
from stream.training.loop import fit
from stream.training.schedule import optimizer_for, warmup_then_linear
from stream.training.snapshot import FitSnapshot
from tests.builders import SHORT, Stream, made_task, tiny_encoder


def test_seconds_are_those_of_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `end_task` does counts, what is called after a step does not; also when going on."""
    now = [100.0]
    monkeypatch.setattr("stream.training.fit_state.time.perf_counter", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    class Measured(Finetune):
        def after_step(self, batch: Batch) -> None:
            passes(1)

        def end_task(self, task: Task) -> None:
            super().end_task(task)
            passes(7)

    task, saved = made_task("a"), []

    def on_step(step: Step) -> None:
        passes(1000)
        saved.append(step.save())

    def learn(resumed: FitSnapshot | None = None) -> FitReport:
        return fit(Stream(Measured(), [task]).learner, task, SHORT, on_step, resumed=resumed)

    assert learn().seconds == 6 + 7
    assert [state.seconds for state in saved] == [1, 2, 3, 4, 5, 6]
    assert learn(saved[1]).seconds == 6 + 7


def test_equals_a_plain_loop() -> None:
    """Written with nothing of the product but its data order and its start."""
    task = made_task("a", 3)
    run = Stream(Finetune(lr=1e-3, head_lr=None), [task])
    run.learn(0)

    model = TaskModel(tiny_encoder(), 0)
    model.add_head(task)
    model.train()
    body, head = model.encoder.body, model.heads["a"]
    body.pooler.requires_grad_(requires_grad=False)
    head.requires_grad_()
    weights = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in model.parameters() if p.requires_grad and p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": weights, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        eps=1e-6,
    )
    train, step, steps = task.split("train"), 0, 6
    for epoch in range(2):
        with torch_randomness(0, "dropout", "a", epoch):
            for rows in training_rows(task, 8, 0, epoch):
                width = -(-int(train.lengths[rows].max()) // 8) * 8
                ids = torch.zeros(len(rows), width, dtype=torch.long)
                mask = torch.zeros_like(ids)
                for line, row in enumerate(rows):
                    tokens = train.token_ids[train.offsets[row] : train.offsets[row + 1]]
                    ids[line, : len(tokens)] = torch.from_numpy(tokens)
                    mask[line, : len(tokens)] = 1
                hidden = body(input_ids=ids, attention_mask=mask, token_type_ids=ids * 0)
                logits = head(nn.functional.dropout(hidden.last_hidden_state[:, 0], 0.1))
                loss = nn.functional.cross_entropy(logits, torch.from_numpy(train.labels[rows]))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*weights, *others], 1.0)
                for group in optimizer.param_groups:  # warm-up over int(0.1 * 6) = 0 steps
                    group["lr"] = 1e-3 * (steps - step) / steps
                optimizer.step()
                step += 1
    assert step == steps
    for name, parameter in run.model.named_parameters():
        expected = model.get_parameter(name)
        torch.testing.assert_close(parameter, expected, rtol=1e-5, atol=1e-7, msg=name)


def test_heads_may_have_a_learning_rate_of_their_own() -> None:
    run = Stream(Finetune(lr=1e-3, head_lr=7e-3), [made_task("a")])
    run.learner.start(run.tasks[0])
    optimizer = optimizer_for(run.learner, weight_decay=0.01)
    names = {id(p): n for n, p in run.model.named_parameters()}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            is_head = names[id(parameter)].startswith("heads.")
            assert group["lr"] == (7e-3 if is_head else 1e-3)
            assert group["weight_decay"] == (0.01 if parameter.ndim > 1 else 0.0)


def test_schedule_rises_for_a_tenth_and_falls_to_zero() -> None:
    rates = [warmup_then_linear(step, 100, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([(i + 1) / 11 for i in range(10)])
    assert rates[10] == 1.0
    assert rates[10:] == pytest.approx(np.linspace(1, 0, 91)[:-1])
    assert warmup_then_linear(0, 1, 0.1) == 1.0


@pytest.mark.parametrize(
    ("rows", "epochs", "min_steps", "expected"),
    [
        (256, 3, 48, (6, 48, 1536)),
        (4000, 3, 48, (3, 375, 12_000)),
        (20, 3, 48, (48, 48, 960)),
        (20, 3, 0, (3, 3, 60)),
        (33, 1, 3, (2, 4, 66)),
    ],
)
def test_small_tasks_get_more_epochs(
    rows: int, epochs: int, min_steps: int, expected: tuple[int, int, int]
) -> None:
    assert planned_work(rows, TrainingConfig(epochs=epochs, min_steps=min_steps))[:3] == expected


def test_a_loss_that_is_not_finite_stops_and_names_task_step_and_rate() -> None:
    run = Stream(Finetune(lr=1e30), [made_task("steep")])
    with pytest.raises(TrainingDivergedError, match=r"'steep' at step \d+ with learning rate \S+"):
        run.learn(0)


def test_weights_that_are_not_finite_give_no_score() -> None:
    run = Stream(Finetune(), [made_task("a")])
    run.learn(0)
    with torch.no_grad():
        run.model.heads["a"].weight.fill_(float("nan"))
    with pytest.raises(TrainingDivergedError, match="logits of task 'a' are not finite"):
        run.evaluate(run.tasks[0])


def test_report_counts_steps_examples_and_losses() -> None:
    task = made_task("a", rows=20)
    run = Stream(Adapter(size=2), [task])
    seen: list[tuple[int, int, int]] = []
    report = fit(run.learner, task, SHORT, lambda s: seen.append((s.number, s.total, s.examples)))
    assert (report.steps, report.examples, len(report.losses)) == (6, 40, 6)
    assert [s[:2] for s in seen] == [(i, 6) for i in range(1, 7)]
    assert sorted(s[2] for s in seen) == [4, 4, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("learner", "epochs"), [(Adapter(lr=2e-2, size=8), 12), (Finetune(lr=5e-3), 4)]
)
def test_learners_learn(learner: Learner, epochs: int) -> None:
    """The label is the first token's parity: far above chance after some epochs."""
    task = made_task("a", 2, rows=200)
    run = Stream(learner, [task])
    fit(learner, task, TrainingConfig(epochs=epochs, min_steps=0, batch_size=20))
    assert run.evaluate(task).score > 0.8


class RandomSeeds(Finetune):
    """Notes the seed of torch's generator at every step."""

    def begin_task(self, task: Task) -> None:
        self.seeds: list[int] = []

    def loss(self, batch: Batch) -> torch.Tensor:
        self.seeds.append(torch.initial_seed())
        return super().loss(batch)


@pytest.mark.parametrize("seed", [0, 3])
def test_dropout_is_seeded_by_run_task_and_epoch(seed: int) -> None:
    run = Stream(RandomSeeds(), [made_task("a")], seed=seed)
    before = torch.initial_seed()
    fit(run.learner, run.tasks[0], SHORT)
    expected = [derive_seed(seed, "dropout", "a", epoch) for epoch in (0, 1)]
    assert run.learner.seeds == [expected[0]] * 3 + [expected[1]] * 3
    assert torch.initial_seed() == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("step", [1, 4])
def test_the_step_that_diverged_is_the_one_named(step: int, value: float) -> None:
    class Breaking(Finetune):
        def loss(self, batch: Batch) -> torch.Tensor:
            self.steps = getattr(self, "steps", 0) + 1
            return super().loss(batch) * (value if self.steps == step else 1.0)

    run = Stream(Breaking(), [made_task("a")])
    with pytest.raises(TrainingDivergedError, match=rf"'a' at step {step} with"):
        fit(run.learner, run.tasks[0], SHORT)


def test_a_fit_that_goes_on_reports_the_whole() -> None:
    """Losses, steps, examples and operations, also of the steps before."""
    task, found = made_task("a", rows=20), []
    for stop in (0, 4):
        saved: list[FitSnapshot] = []
        meters = []
        for resumed in (None, *([True] if stop else [])):
            run = Stream(Adapter(size=2), [task])
            meters.append(FlopMeter(run.model))
            report = fit(
                run.learner,
                task,
                SHORT,
                lambda step, saved=saved: saved.append(step.save()),
                meter=meters[-1],
                resumed=saved[stop - 1] if resumed else None,
            )
        found.append((report.losses, report.steps, report.examples, meters[-1].total))
    assert found[0] == found[1]
    assert found[0][1:3] == (6, 40)


def test_the_optimizer_is_adamw_with_the_epsilon_of_bert() -> None:
    """1e-6 as in BERT's own and adapter-bert's optimizer; torch's default is 1e-8."""
    run = Stream(Finetune(), [made_task("a")])
    run.learner.start(run.tasks[0])
    optimizer = optimizer_for(run.learner, weight_decay=0.01)
    assert {group["eps"] for group in optimizer.param_groups} == {1e-6}
    assert {group["betas"] for group in optimizer.param_groups} == {(0.9, 0.999)}
