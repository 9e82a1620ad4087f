"""Units of learning: how many are handed out, and what they are while the run notes results."""

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stream.config.select import Candidate
from stream.learners import LEARNERS
from stream.record.selection import CandidateRecord, SelectionRecord
from stream.run.ahead import Ahead
from stream.run.selecting import Selecting
from stream.run.units import AHEAD, Units
from stream.run.worker import Learned, Result, Unit

SLOTS = 2
SETTINGS: tuple[dict[str, Any], ...] = ({"lr": 1e-3}, {"lr": 1e-2})


class Engine:
    """Takes jobs; the test says what comes of them."""

    slots = SLOTS

    def submit(self, job: str, *call: Any) -> Future[Any]:
        del job, call
        return Future()


def run_of(tasks: int, *, chooses: bool = False) -> Any:
    """What units read of a run."""
    plain: Any = LEARNERS["adapter"]()
    return SimpleNamespace(
        learner=Selecting(plain, list(map(Candidate, SETTINGS))) if chooses else plain,
        tasks=[SimpleNamespace(name=str(index)) for index in range(tasks)],
        record=SimpleNamespace(selection={}),
        num_done=0,
    )


def units_of(run: Any, folder: Path) -> Units:
    engine: Any = Engine()
    setup: Any = None
    return Units(engine, run, setup, Ahead(folder, enabled=True))


def tried(place: int) -> CandidateRecord:
    return CandidateRecord(settings=SETTINGS[place], restart=0, seed=0, score=0.5)


def test_as_many_as_workers_and_not_far_ahead_of_the_rows(tmp_path: Path) -> None:
    tasks = AHEAD * SLOTS + 3
    units = units_of(run_of(tasks), tmp_path)
    units.begin(None)
    units.hand_out()
    assert list(units.jobs()) == [Unit(0), Unit(1)]
    for index in range(tasks - 2):  # one that ends hands out the next
        units.jobs()[Unit(index)].set_result(Result(Learned(), b""))
    assert len(units.jobs()) == AHEAD * SLOTS + 1
    units.note_taken(0)
    units.hand_out()
    assert len(units.jobs()) == AHEAD * SLOTS + 2


def test_after_an_error_nothing_more_is_handed_out(tmp_path: Path) -> None:
    units = units_of(run_of(4), tmp_path)
    units.begin(None)
    units.hand_out()
    units.jobs()[Unit(1)].set_exception(ValueError("worker"))
    units.jobs()[Unit(0)].set_result(Result(Learned(), b""))
    assert list(units.jobs()) == [Unit(0), Unit(1)]
    assert units.is_learned(0)
    assert not units.is_learned(1)
    with pytest.raises(ValueError, match="worker"):
        units.jobs()[Unit(1)].result()


def test_candidates_that_the_run_notes_stay_units_of_their_task(tmp_path: Path) -> None:
    """The last of them may end after it was looked which tasks are learned."""
    run = run_of(1, chooses=True)
    units = units_of(run, tmp_path)
    units.begin(None)
    units.hand_out()
    results = [Result(Learned(tried=tried(place)), b"%d" % place) for place in range(2)]
    for place, result in enumerate(results):
        units.jobs()[Unit(0, place)].set_result(result)
    run.record.selection["0"] = SelectionRecord(candidates=[tried(0), tried(1)])
    assert units.is_learned(0)
    assert units.results(0) == results


def test_what_is_kept_of_a_unit_goes_when_its_row_is_there(tmp_path: Path) -> None:
    run, kept = run_of(2), Ahead(tmp_path, enabled=True)
    for index in range(2):
        kept.write(Unit(index), Result(Learned(), b"%d" % index))
    units = units_of(run, tmp_path)
    units.begin(None)
    assert [result.state for result in units.results(1)] == [b"1"]
    units.forget_before(1)
    assert [unit for unit, _ in kept.read()] == list(units.jobs()) == [Unit(1)]
