"""What was tried for each task of a run that chooses among candidates, and which one was kept."""

from typing import Any

import msgspec


class CandidateRecord(msgspec.Struct, kw_only=True):
    """One candidate that learned a task.

    Attributes:
        settings: its settings that differ from the run's.
        restart: which start it was, from 0.
        seed: of its first weights, batches and dropout.
        score: on the task's validation rows; null if it failed.
        failed: why it has no score; empty if it has one.
        steps: training steps; of one that failed, those before.
        examples: of these steps.
        train_s: seconds of learning.
        score_s: seconds of scoring.
        scored_examples: validation rows that were scored.
        flops: operations spent learning; null where they are not counted.
        one_pass: operations of one pass over the training rows; null where they are not counted.
    """

    settings: dict[str, Any]
    restart: int
    seed: int
    score: float | None = None
    failed: str = ""
    steps: int = 0
    examples: int = 0
    train_s: float = 0.0
    score_s: float = 0.0
    scored_examples: int = 0
    flops: int | None = None
    one_pass: int | None = None


class SelectionRecord(msgspec.Struct, kw_only=True):
    """The candidates of one task, in order.

    Attributes:
        candidates: those that have learned it so far.
        chosen: the place of the one that serves the task; null until all have learned it.
    """

    candidates: list[CandidateRecord] = []
    chosen: int | None = None

    @property
    def best(self) -> int | None:
        """The place of the highest score, of equal ones the first; None where there is none."""
        scores = [c.score for c in self.candidates if c.score is not None]
        if not scores:
            return None
        return next(i for i, c in enumerate(self.candidates) if c.score == max(scores))
