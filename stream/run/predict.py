"""Serves any learned task of a run; the data of the run are not needed.

In the place of the run may stand what `stream.run.export` wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import softmax

from stream.data.task import Task
from stream.errors import UserError, require, unknown
from stream.evaluation.evaluate import logits_of
from stream.evaluation.routed import Routing
from stream.run.exported import FACTS, serve_export
from stream.run.load import serve_run

SPLIT = "served"
AUTO = "auto"
"""In the place of a task's name: the router of the run finds the task."""
Text = str | tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """The answer for one text: a label with the probability of each, or the score of a regression.

    Attributes:
        label: the most probable label, or of a question the words of its context that answer it;
            None for regression.
        probabilities: by label, their sum is 1; empty for regression and questions.
        score: the predicted score; None for classes.
        task: the task that was inferred; None where it was given.
    """

    label: str | None
    probabilities: dict[str, float]
    score: float | None
    task: str | None = None


class Service:
    """Learned tasks of one run, ready for texts.

    >>> service = Service(Path("runs/..."))                    # doctest: +SKIP
    >>> service.predict("sst2", ["a fine film"])[0].label      # doctest: +SKIP
    'positive'
    """

    def __init__(self, folder: Path, device: str = "auto", encoder: Path | None = None):
        """Load a run's encoder and checkpoint, or an exported task.

        ``encoder`` is the folder of an exported task's encoder where it is not found by itself.

        Raises:
            UserError: neither is there, or a run that kept no checkpoint.
        """
        if (folder / FACTS).is_file():
            served = serve_export(folder, device, encoder)
        else:
            require(encoder is None, f"{folder} is no exported task; a run names its encoder")
            served = serve_run(folder, device)
        self._run = served
        self.tasks = {task.name: task for task in served.tasks}

    def logits(self, task: str, texts: Sequence[Text]) -> np.ndarray:
        """Return the logits, float32 [N, K]: those of the matrix, for the same texts.

        Raises:
            UserError: a task that was not learned, no text, or a pair where one text is meant.
        """
        return self._logits(self._encoded(task, texts))

    def num_texts(self, task: str) -> int:
        """Return how many texts a row of a task has: 1, or 2 of a pair or a question.

        Raises:
            UserError: a task that was not learned.
        """
        if task not in self.tasks:
            raise unknown("learned task", task, self.tasks)
        return 1 if self.tasks[task].spec.kind == "single" else 2

    def _encoded(self, task: str, texts: Sequence[Text]) -> Task:
        """Return a task with the texts as its rows."""
        wanted = self.num_texts(task)
        require(not isinstance(texts, str), "texts must be a list of texts, got one text")
        require(len(texts) > 0, f"no text to predict {task!r} for")
        rows = [_row(task, number, text, wanted) for number, text in enumerate(texts, 1)]
        split = self._run.text_encoder.encode_now(rows, spans=self.tasks[task].is_span)
        return replace(self.tasks[task], splits={SPLIT: split})

    def _logits(self, served: Task) -> np.ndarray:
        """Return the logits of a task's rows."""
        run, tokens = self._run, self._run.config.evaluation.batch_tokens
        return logits_of(run.learner, [served], SPLIT, tokens, run.device)[0]

    def predict(self, task: str, texts: Sequence[Text]) -> list[Prediction]:
        """Return the answer for each text.

        Args:
            task: a learned task; ``auto`` takes for each text the one that the router finds.
            texts: a text, or a tuple of two, a row.

        Raises:
            UserError: as `logits`; ``auto`` with a run that knew its tasks.
        """
        if task == AUTO and AUTO not in self.tasks:
            return self._routed(texts)
        served = self._encoded(task, texts)
        return _predictions(served, self._logits(served))

    def require_router(self) -> Routing:
        """Return what infers tasks.

        Raises:
            UserError: the run has none, or a task of it finds answers in a text of its own.
        """
        routing, learned = self._run.routing, ", ".join(self.tasks)
        require(
            routing is not None,
            f"the task can be left to a run with scenario=inferred alone; this one has no router: "
            f"name the task of the texts ({learned}), or run again with scenario=inferred",
        )
        spans = ", ".join(task.name for task in self.tasks.values() if task.is_span)
        require(not spans, f"with {spans} among the tasks, name the task of the texts ({learned})")
        assert routing is not None
        return routing

    def _routed(self, texts: Sequence[Text]) -> list[Prediction]:
        """Return the answer for each text by the task that is inferred for it."""
        routing, tasks = self.require_router(), list(self.tasks.values())
        require(not isinstance(texts, str), "texts must be a list of texts, got one text")
        require(len(texts) > 0, "no text to predict")
        answers: dict[int, Prediction] = {}
        rows = [_row(AUTO, number, text, None) for number, text in enumerate(texts, 1)]
        for wanted in sorted({len(row) for row in rows}):  # the rows of a split are alike
            places = np.array([place for place, row in enumerate(rows) if len(row) == wanted])
            split = self._run.text_encoder.encode_now([rows[place] for place in places])
            asked = replace(tasks[0], splits={SPLIT: split})
            chosen = routing.inferred(asked, SPLIT, tasks)
            for number in np.unique(chosen).tolist():
                mine = np.flatnonzero(chosen == number)
                served = replace(tasks[number], splits={SPLIT: split.select(mine)})
                found = _predictions(served, self._logits(served))
                named = [replace(answer, task=served.name) for answer in found]
                answers.update(zip(places[mine].tolist(), named, strict=True))
        return [answers[place] for place in range(len(rows))]


def _predictions(served: Task, logits: np.ndarray) -> list[Prediction]:
    """Return what the logits of a task's rows say."""
    labels, answers = served.spec.labels, served.split(SPLIT).answers
    if answers is not None:
        return [Prediction(text, {}, None) for text in answers.predicted(logits)]
    if labels is None:
        return [Prediction(None, {}, float(row[0])) for row in logits]
    answers = []
    for row in softmax(logits.astype(np.float64), axis=1).tolist():
        by_label = dict(zip(labels, row, strict=True))
        answers.append(Prediction(max(by_label, key=by_label.__getitem__), by_label, None))
    return answers


def _row(task: str, number: int, given: Text, wanted: int | None) -> tuple[str, ...]:
    """Return the texts of one row.

    Args:
        task: the task's name, for messages.
        number: the row's number, from 1, for messages.
        given: its text or texts.
        wanted: how many texts a row has; None takes 1 or 2.

    Raises:
        UserError: another number of texts, or something that is no text.
    """
    row = tuple(given) if isinstance(given, list | tuple) else (given,)
    two = "2 texts, apart by a tab (from Python, a tuple of both)"
    what = {1: "1 text", 2: two, None: f"1 text, or {two}"}[wanted]
    valid = (1, 2) if wanted is None else (wanted,)
    require(
        len(row) in valid and all(isinstance(text, str) for text in row),
        f"text {number}: a row of task {task!r} is {what}; got {str(given)[:60]!r}",
    )
    for text in row:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"text {number}: half a surrogate pair, no text: {error}") from error
    return row
