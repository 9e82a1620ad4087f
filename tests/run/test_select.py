"""The per-task choice: the best candidate serves as a plain run of it would; all work counts."""

import os
import signal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from benchmarks.in_process import composed, streamed
from benchmarks.stress.kill import comparable
from stream.config.run import RunConfig
from stream.config.select import Candidate, candidates_of
from stream.errors import UserError
from stream.evaluation.evaluate import evaluate
from stream.files.run_folder import FILE_NAME
from stream.learners import LEARNERS
from stream.models.encoder import load_encoder
from stream.models.task_model import TaskModel
from stream.record.run_record import RunRecord
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.report.plan import WorkPlan
from stream.run.export import export_task
from stream.run.interrupt import Interrupted
from stream.run.predict import Service
from stream.run.run import Run
from stream.run.selecting import Selecting
from stream.run.session import run_in
from stream.run.settings import compose_settings
from stream.run.setup import build_run
from stream.run.verify import verify
from stream.training.loop import fit

TINY = ("task=[stsb,cola]", "backbone=tiny", "device=cpu", "data.train=24", "data.validation=12")
TINY += ("data.test=8", "training.epochs=1", "training.min_steps=4", "training.batch_size=8")
SELECT = "select={lr: [1e30,3e-2], size: [2,4], restarts: 2}"
CHECKPOINTS = "checkpoint.every=3"
CPU = torch.device("cpu")


def run(folder: Path, config: RunConfig) -> RunRecord:
    folder.mkdir(exist_ok=True)
    resume = (folder / FILE_NAME).exists()
    run_in(folder, config, Console(quiet=True), overrides=TINY, resume=resume)
    return RunRecord.read(folder)


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return composed([*TINY, SELECT, CHECKPOINTS])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, config: RunConfig) -> tuple[Path, RunRecord]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, run(folder, deepcopy(config))


@pytest.fixture(scope="module")
def plain(config: RunConfig) -> Run:
    """A run that does not choose, on the same rows."""
    return build_run(replace(deepcopy(config), select=None), Path())


def learned(plain: Run, place: int, tried: CandidateRecord) -> Any:
    """What a plain learner with these settings and this seed has learned of one task."""
    size = plain.text_encoder.vocabulary_size
    encoder = load_encoder(plain.config.backbone, vocabulary_size=size)
    learner = replace(plain.config.learner, **tried.settings)
    pad = plain.text_encoder.pad_id
    learner.attach(TaskModel(encoder, tried.seed), tasks=plain.tasks, seed=tried.seed, pad_id=pad)
    fit(learner, plain.tasks[place], plain.config.training)
    return learner


def test_the_best_serves_with_the_bits_of_a_plain_run(whole, plain: Run) -> None:
    record = whole[1]
    seeds = [Candidate({}, restart).seed(0) for restart in range(2)]
    assert seeds[0] == record.seed == 0
    assert seeds[1] != 0
    for place, name in enumerate(record.order):
        found, task = record.selection[name], plain.tasks[place]
        grid = [(lr, size, seed) for lr in (1e30, 3e-2) for size in (2, 4) for seed in seeds]
        assert grid == [(*c.settings.values(), c.seed) for c in found.candidates]
        scores, digests, states = [], [], []
        for tried in found.candidates:
            if tried.settings["lr"] == 1e30:
                assert (tried.score, tried.steps) == (None, 1)  # then it diverged
                assert "try a smaller learner.lr" in tried.failed
                scores.append(-np.inf)
                digests.append("")
                continue
            learner = learned(plain, place, tried)
            scores.append(evaluate(learner, task, "validation", None, CPU).score)
            digests.append(evaluate(learner, task, "test", None, CPU).digest)
            states.append(sum(t.numel() for t in learner.task_state(name).values()))
        assert [c.score for c in found.candidates] == [s if s > -1 else None for s in scores]
        assert found.chosen == int(np.argmax(scores))
        cell = record.cells[-1][place]
        assert cell is not None
        assert cell.digest == digests[found.chosen]
        assert len(set(digests)) == 5, "the candidates must be told apart"
        assert place or len(set(scores)) > 2
        kept = [s for s, d in zip(states, filter(None, digests), strict=True) if d == cell.digest]
        assert record.ledger.tasks[place].trained_parameters == kept[0]


def test_what_is_stored_is_the_encoder_and_the_winners(whole) -> None:
    record = whole[1]
    own = sum(row.trained_parameters for row in record.ledger.tasks)
    # The LayerNorms as they came are stored too, for the next task; the pooler is not trained.
    assert record.ledger.tasks[-1].stored_parameters == record.ledger.base_parameters + own
    assert record.memory.promised
    assert record.memory.tasks_identical == record.memory.tasks_checked == 1


def test_all_work_is_counted(whole, config: RunConfig, plain: Run) -> None:
    record = whole[1]
    tried = [c for of in record.selection.values() for c in of.candidates]
    good = [c for c in tried if c.score is not None]
    assert {c.steps for c in good} == {6}
    assert {c.examples for c in good} == {48}
    assert record.timing.by_task.steps == [4 * 6 + 4 * 1] * 2
    assert record.timing.steps == 56
    assert record.timing.select_examples == 2 * 4 * 12
    plan = WorkPlan.of(config, plain.tasks)
    assert (plan.steps, plan.examples, plan.selecting) == (2 * 8 * 6, 2 * 8 * 48, 2 * 8 * 12)


def test_operations_of_all_candidates_are_counted() -> None:
    small = (
        *TINY[1:],
        "task=[stsb]",
        "data.train=8",
        "evaluation.baseline=false",
        "count_flops=true",
    )
    alone, both = streamed(small), streamed([*small, "select.lr=[1e-3,2e-3]"])
    assert alone.flops is not None
    assert both.flops is not None
    assert both.flops.train == [2 * spent for spent in alone.flops.train]
    assert both.flops.epochs == [2 * epochs for epochs in alone.flops.epochs]
    assert both.flops.one_pass == alone.flops.one_pass


def test_it_verifies_predicts_and_exports(whole, tmp_path: Path) -> None:
    folder = whole[0]
    assert [check for check in verify(folder, "cpu") if not check.ok] == []
    export_task(folder, "stsb", tmp_path / "out")
    texts = [("one text", "another"), ("a third", "a fourth one")]
    served, alone = Service(folder, "cpu"), Service(tmp_path / "out", "cpu")
    assert np.array_equal(served.logits("stsb", texts), alone.logits("stsb", texts))


def sending(original: Callable[..., Any], at: int) -> Callable[..., Any]:
    calls = iter(range(1, 10**6))

    def call(*arguments: Any, **named: Any) -> Any:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGHUP)
        return original(*arguments, **named)

    return call


def test_it_goes_on_within_and_between_candidates(
    whole, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = (("stream.training.fit_state.FitState.note", 6), ("stream.run.fitting.evaluate", 2))
    for path, at in moments:
        with monkeypatch.context() as patch:
            patch.setattr(path, sending(resolve_name(path), at))
            with pytest.raises(Interrupted) as caught:
                run(tmp_path, deepcopy(config))
        assert caught.value.saved
        assert [check for check in verify(tmp_path, "cpu") if not check.ok] == []
    run(tmp_path, deepcopy(config))
    assert without_times(tmp_path) == without_times(whole[0])


def test_candidates_that_wait_for_the_next_task_learn_it_as_new_ones(
    whole, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do on a GPU, to keep their graphs."""
    made = []
    new = Selecting.trial
    monkeypatch.setattr("stream.run.fitting.keeps_graphs", lambda engine: True)
    monkeypatch.setattr(Selecting, "trial", lambda *given: made.append(given) or new(*given))
    run(tmp_path, deepcopy(config))
    tried = [c for of in whole[1].selection.values() for c in of.candidates]
    assert len(made) == len(tried) - sum(c.score is not None for c in tried[: len(tried) // 2])
    assert without_times(tmp_path) == without_times(whole[0])
    waiting = [learner for learner, _ in made[0][0].waiting.values()]
    assert [learner.learned for learner in waiting] == [[]] * len(waiting) != []


def test_what_the_best_learned_is_kept_apart_from_who_goes_on_learning(plain: Run) -> None:
    selecting, tensors = Selecting(plain.learner, []), {"learned": torch.ones(2)}
    selecting.keep(tensors)
    tensors["learned"].zero_()
    assert selecting.best["learned"].tolist() == [1, 1]


def without_times(folder: Path) -> dict[str, Any]:
    """Return what must be equal in two runs."""
    found = comparable(folder)
    for tried in (c for of in found["selection"].values() for c in of["candidates"]):
        tried.update(train_s=0, score_s=0)
    return found


def test_equal_scores_choose_the_first() -> None:
    tried = [
        CandidateRecord(settings={}, restart=0, seed=0, score=s) for s in (None, 0.5, 0.7, 0.7)
    ]
    assert SelectionRecord(candidates=tried).best == 2
    assert SelectionRecord(candidates=tried[:1]).best is None


@pytest.mark.parametrize(
    ("learner", "given", "told"),
    [
        ("ewc", {"lr": [1.0]}, "select needs a learner whose tasks share nothing"),
        ("progressive", {"lr": [1.0]}, "select needs a learner whose tasks share nothing"),
        ("adapter", {"sise": [1]}, "unknown field of select 'sise'. Did you mean 'size'?"),
        ("adapter", {"lr": 1.0}, "select.lr must be a list, got 1.0"),
        ("adapter", {"lr": [1.0, 1]}, "select.lr has a value twice"),
        ("adapter", {"size": [0]}, "learner.size must be at least 1, got 0"),
        ("adapter", {"restarts": 0}, "select.restarts must be a whole number from 1"),
        ("adapter", {}, "select names nothing to choose from"),
        ("adapter", 3, "select must name fields of the learner"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(learner: str, given: Any, told: str) -> None:
    with pytest.raises(UserError) as caught:
        candidates_of(given, LEARNERS[learner]())
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_it_is_typed_in_two_ways_and_excludes_the_probe() -> None:
    one = ["task=[rte]"]
    whole = compose_settings([*one, "select={lr: [1e-4,1e-3], restarts: 2}"])[0]
    apart = compose_settings([*one, "select.lr=[1e-4,1e-3]", "select.restarts=2"])[0]
    assert whole.select == apart.select == {"lr": [1e-4, 1e-3], "restarts": 2}
    with pytest.raises(UserError, match="exclude each other"):
        compose_settings([*one, "select.lr=[1e-4]", "probe.every=2"])
