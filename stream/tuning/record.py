"""What a search has tried: ``trials.json``.

Scores are fractions, seconds those of learning and scoring. The file is written after every trial.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from stream.files.atomic import write_atomic

FILE_NAME = "trials.json"
SCHEMA = 1
TIES = "of equal scores the trial that was tried first"


class SeedRun(msgspec.Struct, kw_only=True):
    """One run of a trial.

    Attributes:
        seed: its seed.
        folder: its folder, below that of the trials.
        score: the objective; null if it failed.
        reason: why it failed; empty if it did not.
        seconds: of learning and scoring.
        steps: training steps.
    """

    seed: int
    folder: str
    score: float | None = None
    reason: str = ""
    seconds: float = 0.0
    steps: int = 0


class TrialRecord(msgspec.Struct, kw_only=True):
    """Settings that were tried.

    Attributes:
        number: from 0, in the order in which they were tried.
        settings: the values of what is searched.
        origin: of the grid, beyond its ``edge``, or drawn by ``optuna``.
        status: ``failed`` if any of its runs failed.
        reason: why.
        score: the mean of its runs; null if it failed.
        seconds: of all runs.
        steps: of all runs.
        runs: one for each seed.
    """

    number: int
    settings: dict[str, Any]
    origin: Literal["grid", "edge", "optuna"]
    status: Literal["complete", "failed"]
    reason: str
    score: float | None
    seconds: float
    steps: int
    runs: list[SeedRun]

    @classmethod
    def of(
        cls,
        number: int,
        settings: dict[str, Any],
        origin: Literal["grid", "edge", "optuna"],
        runs: list[SeedRun],
    ) -> "TrialRecord":
        """Return the record of a trial whose runs are done."""
        scores = [run.score for run in runs if run.score is not None]
        failed = next((run.reason for run in runs if run.score is None), "")
        complete = len(scores) == len(runs)
        return cls(
            number=number,
            settings=settings,
            origin=origin,
            status="complete" if complete else "failed",
            reason=failed,
            score=sum(scores) / len(scores) if complete else None,
            seconds=sum(run.seconds for run in runs),
            steps=sum(run.steps for run in runs),
            runs=runs,
        )


class LearnerRecord(msgspec.Struct, kw_only=True):
    """The search of one learner.

    Attributes:
        engine: ``grid`` or ``optuna``.
        space: what is searched: lists of values, and intervals as objects.
        trials: in the order in which they were tried.
        best: the number of the best trial; null where all failed.
        ends: of each setting with several numbers, whether the best lies inside what was tried,
            or why the search did not go on.
        preset: the name of the preset; null until the search is done, or where all failed.
    """

    engine: str
    space: dict[str, Any]
    trials: list[TrialRecord] = []
    best: int | None = None
    ends: dict[str, str] = {}
    preset: str | None = None

    def best_of(self, sign: int) -> TrialRecord | None:
        """Return the best trial so far, of equal ones the first; None where none has a score."""
        scored = [t for t in self.trials if t.score is not None]
        return max(scored, key=lambda t: (sign * (t.score or 0.0), -t.number), default=None)


class TuneRecord(msgspec.Struct, kw_only=True):
    """A search.

    Attributes:
        status: ``partial`` until all learners are done.
        command: what was typed behind ``task-stream tune``.
        stream: the stream's name.
        tasks: what each run learned, in order.
        split: the rows that judged.
        objective: the metric that decided.
        better: whether a ``higher`` or a ``lower`` one is better.
        ties: which of equal trials is the best.
        most_trials: how many settings of each learner may be tried, the same for all.
        seeds: of the runs of each trial.
        learners: by name.
    """

    schema: int = SCHEMA
    status: Literal["partial", "complete"] = "partial"
    command: list[str]
    stream: str
    tasks: list[str]
    split: str
    objective: str
    better: Literal["higher", "lower"]
    ties: str = TIES
    most_trials: int
    seeds: list[int]
    learners: dict[str, LearnerRecord] = {}

    def write(self, folder: Path) -> None:
        """Write ``trials.json``, as a whole."""
        folder.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(self), indent=1)
        write_atomic(folder / FILE_NAME, text, b"\n")
