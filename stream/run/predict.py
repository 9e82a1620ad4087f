"""Serves any learned task of a run; the data of the run are not needed.

In the place of the run may stand what `stream.run.export` wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from stream.config.task import MOST_SEGMENTS, TaskSpec
from stream.data.layout import Layout, layout_of, plain_layout
from stream.data.task import Task
from stream.errors import UserError, require, unknown
from stream.evaluation.evaluate import logits_of
from stream.evaluation.routed import Routing
from stream.run.exported import FACTS, serve_export
from stream.run.load import serve_run

SPLIT = "served"
AUTO = "auto"
"""In the place of a task's name: the router of the run finds the task."""
ANY = "1 text, or several apart by tabs (from Python, a tuple of them)"
Text = str | tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """The answer for one text: a label with the probability of each, or the score of a regression.

    Attributes:
        label: the most probable label, or of a question the words of its context that answer it;
            None for regression.
        probabilities: by label, their sum is 1; empty for regression and questions.
        score: the predicted score; None for classes.
        tasks: of a head that all tasks share, the tasks that have the class; probabilities are
            then by ``task/label`` (`SharedClasses.names`), of all classes met.
        task: the task that was inferred; None where it was given.
    """

    label: str | None
    probabilities: dict[str, float]
    score: float | None
    tasks: tuple[str, ...] = ()
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

    def read_as(self, task: str | None) -> str:
        """Return the task as whose rows texts are read: the one named, or any of a shared head.

        Raises:
            UserError: none is named and each task has a head of its own, or tasks of a shared head
                differ in how many texts a row has.
        """
        if task is not None:
            return task
        shared = all(known.shared is not None for known in self.tasks.values())
        learned = ", ".join(self.tasks)
        require(shared, f"which task is it? Give --task; learned: {learned}")
        counts = {self.num_texts(name) for name in self.tasks}
        require(
            len(counts) == 1,
            f"some tasks have one text a row and some two; say with --task how to read: {learned}",
        )
        return list(self.tasks)[-1]

    def logits(self, task: str, texts: Sequence[Text]) -> np.ndarray:
        """Return the logits, float32 [N, K]: those of the matrix, for the same texts.

        Raises:
            UserError: a task that was not learned, no text, or a pair where one text is meant.
        """
        return self._logits(self._encoded(task, texts))

    def num_texts(self, task: str) -> int:
        """Return how many texts a row of a task has, such as 2 of a pair or a question.

        Raises:
            UserError: a task that was not learned.
        """
        if task not in self.tasks:
            raise unknown("learned task", task, self.tasks)
        return self.tasks[task].spec.num_fields

    def _encoded(self, task: str, texts: Sequence[Text]) -> Task:
        """Return a task with the texts as its rows."""
        wanted = self.num_texts(task)
        _require_list(texts)
        require(len(texts) > 0, f"no text to predict {task!r} for")
        spec = self.tasks[task].spec
        what = _wanted(spec)
        rows = [_row(task, number, text, wanted, what) for number, text in enumerate(texts, 1)]
        encoder = self._run.text_encoder
        split = encoder.encode_now(rows, layout_of(spec), spans=self.tasks[task].is_span)
        return replace(self.tasks[task], splits={SPLIT: split})

    def _logits(self, served: Task) -> np.ndarray:
        """Return the logits of a task's rows."""
        run, tokens = self._run, self._run.config.evaluation.batch_tokens
        return logits_of(run.learner, [served], SPLIT, tokens, run.device)[0]

    def predict(self, task: str | None, texts: Sequence[Text]) -> list[Prediction]:
        """Return the answer for each text; with a shared head no task need be named.

        Args:
            task: a learned task; ``auto`` takes for each text the one that the router finds.
            texts: a text, or a tuple of two, a row.

        Raises:
            UserError: as `logits` and `read_as`; ``auto`` with a run that knew its tasks.
        """
        if task == AUTO and AUTO not in self.tasks:
            return self._routed(texts)
        served = self._encoded(self.read_as(task), texts)
        logits = self._logits(served)
        if served.shared is not None:
            return self._among_all(served.shared.names, logits)
        return _predictions(served, logits)

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
        _require_list(texts)
        require(len(texts) > 0, "no text to predict")
        answers: dict[int, Prediction] = {}
        rows = [_row(AUTO, number, text, None, ANY) for number, text in enumerate(texts, 1)]
        for wanted in sorted({len(row) for row in rows}):  # the rows of a split are alike
            places = np.array([place for place, row in enumerate(rows) if len(row) == wanted])
            encoder, layout = self._run.text_encoder, self._layout(wanted)
            split = encoder.encode_now([rows[place] for place in places], layout)
            asked = replace(tasks[0], splits={SPLIT: split})
            chosen = routing.inferred(asked, SPLIT, tasks)
            for number in np.unique(chosen).tolist():
                mine = np.flatnonzero(chosen == number)
                served = replace(tasks[number], splits={SPLIT: split.select(mine)})
                found = _predictions(served, self._logits(served))
                named = [replace(answer, task=served.name) for answer in found]
                answers.update(zip(places[mine].tolist(), named, strict=True))
        return [answers[place] for place in range(len(rows))]

    def _layout(self, number: int) -> Layout | None:
        """Return how rows of so many texts are joined: as tasks that have them say, if alike."""
        specs = (task.spec for task in self.tasks.values())
        known = {layout_of(spec) for spec in specs if spec.num_fields == number}
        return known.pop() if len(known) == 1 else plain_layout(number)

    def _among_all(self, names: Sequence[str], logits: np.ndarray) -> list[Prediction]:
        """Return the answers of a shared head: a class, and the tasks that have it."""
        answers = []
        for row in softmax(logits.astype(np.float64), axis=1):
            best = int(row.argmax())
            task, _, label = names[best].partition("/")
            owners = [t.name for t in self.tasks.values() if t.shared and best in t.shared.places]
            by_name = dict(zip(names, row.tolist(), strict=False))  # the first ones are met
            answers.append(Prediction(label, by_name, None, tuple(owners or [task])))
        return answers


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


def _wanted(spec: TaskSpec) -> str:
    """Return in words what a row of a task is."""
    number = spec.num_fields
    if number <= MOST_SEGMENTS:
        return ("1 text", "2 texts, apart by a tab (from Python, a tuple of both)")[number - 1]
    names = ", ".join(spec.field_names)
    return f"{number} texts, apart by tabs (from Python, a tuple of them): {names}"


def _require_list(texts: Any) -> None:
    """Raise UserError for what holds no texts in order: a data frame would give its columns."""
    is_text = isinstance(texts, str | bytes)
    one_by_one = isinstance(texts, Sequence) or getattr(texts, "ndim", 0) == 1  # arrays, columns
    kind = "one text" if is_text else f"a {type(texts).__name__}"
    require(one_by_one and not is_text, f"texts must be a list of texts, got {kind}")


def _row(task: str, number: int, given: Text, wanted: int | None, what: str) -> tuple[str, ...]:
    """Return the texts of one row.

    Args:
        task: the task's name, for messages.
        number: the row's number, from 1, for messages.
        given: its text or texts.
        wanted: how many texts a row has; None takes any number.
        what: the same in words.

    Raises:
        UserError: another number of texts, or something that is no text.
    """
    row = tuple(given) if isinstance(given, list | tuple) else (given,)
    require(
        len(row) == (wanted or max(len(row), 1)) and all(isinstance(text, str) for text in row),
        f"text {number}: a row of task {task!r} is {what}; got {str(given)[:60]!r}",
    )
    for text in row:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"text {number}: half a surrogate pair, no text: {error}") from error
    return row
