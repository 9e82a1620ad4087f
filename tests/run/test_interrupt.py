"""Signals: each one that asks to stop is noted, saved, and gone on from."""

import os
import pickle
import signal
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from rich.console import Console

from benchmarks.stress.kill import comparable
from stream.cli.sweeps import requeue
from stream.config.run import RunConfig
from stream.files.run_folder import FILE_NAME
from stream.run.interrupt import (
    DEMANDS,
    WARNINGS,
    Interrupted,
    StopAll,
    stop_requests,
)
from stream.run.session import run_in
from stream.run.settings import compose_settings

SIGNALS = (*DEMANDS, *WARNINGS)
HUP, USR1, USR2 = WARNINGS
INT, TERM = DEMANDS
TINY = ("task=[stsb,cola]", "backbone=tiny", "tracking=none", "device=cpu", "data.train=24")
TINY += ("data.validation=4", "data.test=4", "training.epochs=1", "training.min_steps=4")
TINY += ("training.batch_size=8", "checkpoint.every=2")


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_is_noted_and_its_handler_comes_back(number: int) -> None:
    before = signal.getsignal(number)
    with stop_requests() as request:
        request.check()
        send(number)
        request.saved = True
        with pytest.raises(Interrupted) as caught:
            request.check()
    assert (caught.value.signum, caught.value.saved) == (number, True)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", SIGNALS)
def test_what_was_ignored_stays_ignored(number: int) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with stop_requests() as request:
            send(number)
            request.check()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("numbers", "at_once"),
    [
        ((TERM, TERM), True),
        ((INT, INT), True),
        ((TERM, INT), True),
        ((HUP, INT, TERM), True),
        ((HUP, HUP), False),
        ((USR1, USR1, USR1), False),
        ((USR1, TERM), False),
        ((TERM, HUP, USR2), False),
    ],
)
def test_a_second_demand_stops_at_once_and_warnings_wait(
    numbers: tuple[int, ...], at_once: bool
) -> None:
    with stop_requests() as request:
        if at_once:
            with pytest.raises(Interrupted):
                send(*numbers)
        else:
            send(*numbers)
        assert request.signum == numbers[0]


def test_without_a_run_a_signal_stops_at_once_and_says_that_nothing_is_saved() -> None:
    with stop_requests(StopAll), pytest.raises(Interrupted) as caught:
        send(USR1)
    assert not caught.value.saved


def test_an_interruption_comes_whole_from_another_process() -> None:
    found = pickle.loads(pickle.dumps(Interrupted(USR2, saved=False)))
    assert (str(found), found.signum, found.saved) == ("stopped by SIGUSR2", USR2, False)


@pytest.mark.parametrize(
    ("number", "preempted", "requeued"),
    [(TERM, "USR2", USR2), (USR1, "USR2", USR2), (HUP, "USR1", USR1), (INT, "USR2", None)],
)
def test_submitit_s_own_handler_puts_a_job_back(
    monkeypatch: pytest.MonkeyPatch, number: int, preempted: str, requeued: int | None
) -> None:
    got: list[int] = []
    before = {n: signal.signal(n, lambda signum, frame: got.append(signum)) for n in WARNINGS}
    try:
        requeue(Interrupted(number))  # not within submitit
        assert got == []
        monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
        monkeypatch.setenv("SUBMITIT_PREEMPT_SIGNAL", preempted)
        requeue(Interrupted(number))
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
    assert got == ([] if requeued is None else [requeued])


def run(folder: Path, config: RunConfig) -> None:
    folder.mkdir(exist_ok=True)
    resume = (folder / FILE_NAME).exists()
    run_in(folder, config, Console(quiet=True), overrides=TINY, resume=resume)


MOMENTS: list[tuple[int, str, int]] = [  # signal, what it comes within, at which call
    (HUP, "stream.run.setup.load_encoder", 1),  # before the first task
    (USR1, "stream.run.bench.evaluate", 1),  # while the untrained learner is scored
    (USR2, "stream.training.fit_state.FitState.note", 1),  # within a task
    (TERM, "stream.run.checkpoint.write_atomic", 2),  # while it is saved
    (INT, "stream.run.bench.evaluate", 1),  # while the row of a learned task is measured
]


def sending(number: int, original: Callable[..., Any], at: int) -> Callable[..., Any]:
    calls = iter(range(1, 10**6))

    def call(*arguments: Any, **named: Any) -> Any:
        if next(calls) == at:
            send(number)
        return original(*arguments, **named)

    return call


def test_a_run_that_every_signal_stopped_in_turn_ends_as_if_none_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream.run.runner.write_figures", lambda *_: [])
    stopped, config = tmp_path / "stopped", compose_settings(TINY)[0]
    for number, path, at in MOMENTS:
        with monkeypatch.context() as patch:
            patch.setattr(path, sending(number, resolve_name(path), at))
            with pytest.raises(Interrupted) as caught:
                run(stopped, deepcopy(config))
        assert (caught.value.signum, caught.value.saved) == (number, True), path
    run(stopped, deepcopy(config))
    run(tmp_path / "whole", deepcopy(config))
    assert comparable(stopped) == comparable(tmp_path / "whole")
