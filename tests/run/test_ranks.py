"""A whole run on two ranks: one writes, all stop together and go on, what cannot be is said."""

import os
import signal
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stream.cli.ranks import take_part
from stream.distributed.world import World
from stream.errors import UserError
from stream.record.run_record import RunRecord
from stream.run import learning
from stream.run.interrupt import Interrupted
from stream.run.ranks import check_ranks
from stream.run.settings import compose_settings
from tests.distributed.ranks import on_ranks

TINY = ("learner=finetune", "task=[stsb,cola]", "backbone=tiny", "tracking=none", "device=cpu")
TINY += ("data.train=16", "data.validation=4", "data.test=4", "training.epochs=6")
TINY += ("training.batch_size=8", "training.min_steps=0", "evaluation.baseline=false")
TINY += ("display=quiet",)


def outcome(arguments: Sequence[str], scratch: Path) -> str:
    """Take part in a run whose other folders are in ``scratch``; return how it ended."""
    tempfile.tempdir = str(scratch)
    try:
        take_part(arguments, World.now())
    except (UserError, Interrupted) as error:
        return str(error)
    return "complete"


def runs(folder: Path) -> list[str]:
    """Run at once; then stop by a signal to the second rank alone, and go on."""
    scratch = folder / f"scratch-{World.now().rank}"
    scratch.mkdir()
    ends = [outcome([*TINY, f"hydra.run.dir={folder}/whole"], scratch)]
    kept = learning.save_within_task

    def with_signal(run: Any, index: int, step: Any, stop: Any) -> None:
        if World.now().rank == 1 and (index, step.number) == (1, 4):
            os.kill(os.getpid(), signal.SIGTERM)
        kept(run, index, step, stop)

    learning.save_within_task = with_signal
    ends.append(outcome([*TINY, f"hydra.run.dir={folder}/parts"], scratch))
    learning.save_within_task = kept
    ends.append(outcome([f"resume={folder}/parts", "display=quiet"], scratch))
    ends += [outcome([*TINY, text], scratch) for text in ("leaks=x", "count_flops=true", "-m")]
    return [*ends, str([path.name for path in scratch.glob("task-stream-*")])]


@pytest.mark.slow
def test_a_run_of_two_ranks(tmp_path: Path) -> None:
    first, second = on_ranks(partial(runs, tmp_path), tmp_path)
    assert first == second
    whole, stopped, resumed, *refused, left = first
    assert (whole, stopped, resumed) == ("complete", "stopped by SIGTERM", "complete")
    for text, told in zip(("leaks", "count_flops", "-m"), refused, strict=True):
        assert text in told
    assert left == "[]"
    records = [RunRecord.read(tmp_path / name) for name in ("whole", "parts")]
    for record in records:
        assert record.versions["ranks"] == "2"
        assert all(cell.digest for row in record.cells for cell in row if cell)
    cells = [[[c and c.digest for c in row] for row in record.cells] for record in records]
    assert cells[0] == cells[1]
    assert records[0].losses == records[1].losses


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["learner=adapter"], "workers=N"),
        (["learner=migu"], "whole batches"),
        (["learner=prototype"], "no training steps"),
        (["learner=finetune", "device=cuda:1"], "its own"),
    ],
)
def test_what_ranks_cannot_share_is_refused(settings: list[str], told: str) -> None:
    config, _ = compose_settings(["task=[cola]", *settings])
    with pytest.raises(UserError, match=told):
        check_ranks(config, World(1, 2))
    check_ranks(config, World())


def test_a_method_that_reads_earlier_tasks_may_have_ranks() -> None:
    """Its tasks cannot be learned apart from each other."""
    check_ranks(compose_settings(["task=[cola]", "learner=progressive"])[0], World(1, 2))


def test_without_torchrun_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object, **named: object) -> None:
        raise AssertionError("one process alone has nobody to talk to")

    monkeypatch.setattr("torch.distributed.all_reduce", never)
    monkeypatch.setattr("torch.distributed.all_gather_object", never)
    world = World.now()
    assert world.alone
    assert world.any(told=True)
    assert world.of_all(3) == [3]
    assert world.from_first("x") == "x"
