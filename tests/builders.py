"""Builders that the tests share: everything here is small, seeded and generated."""

from collections.abc import Callable

import numpy as np
import torch

from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.task import Split, Task
from stream.evaluation.evaluate import digest, evaluate, logits_of
from stream.learners.base import Learner
from stream.models.encoder import Encoder, load_encoder
from stream.models.task_model import TaskModel
from stream.record.matrix import ScoreMatrix
from stream.seeding import numpy_generator
from stream.training.loop import fit

CPU = torch.device("cpu")
VOCABULARY = 60
TINY = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
SHORT = TrainingConfig(epochs=2, min_steps=0, batch_size=8)


def tiny_encoder(seed: int = 0, **shape) -> Encoder:
    """A BERT-like encoder of random weights."""
    config = BackboneConfig("tiny", "random", shape={**TINY, **shape})
    return load_encoder(config, vocabulary_size=VOCABULARY, seed=seed)


def made_spec(num_labels: int | None = 2, kind: str = "single") -> TaskSpec:
    """A specification with ``num_labels`` classes; None is regression."""
    return TaskSpec(
        title="made",
        kind=kind,
        labels=None if num_labels is None else [f"label {i}" for i in range(num_labels)],
        score_range=[0.0, 5.0] if num_labels is None else None,
        metric="spearman" if num_labels is None else "accuracy",
        source="made for tests",
        files=FilesSource(text=["text"] if kind == "single" else ["text", "other"]),
    )


def made_split(name: str, num_labels: int | None, rows: int) -> Split:
    """Random token ids; the label is what the first token says."""
    generator = numpy_generator(0, "made", name)
    lengths = generator.integers(4, 12, rows)
    tokens = [generator.integers(5, VOCABULARY, length) for length in lengths]
    first = np.array([row[0] for row in tokens])
    labels = (first % 6).astype(np.float32).clip(0, 5) if num_labels is None else first % num_labels
    return Split(
        np.concatenate(tokens).astype(np.int32),
        np.cumsum([0, *lengths], dtype=np.int64),
        lengths.astype(np.int32),
        labels,
    )


def made_task(name: str, num_labels: int | None = 2, rows: int = 24) -> Task:
    """A task of random token ids."""
    splits = {s: made_split(f"{name}/{s}", num_labels, rows) for s in ("train", "validation")}
    splits["test"] = made_split(f"{name}/test", num_labels, rows)
    return Task(name, made_spec(num_labels), splits, {s: f"{name}/{s}" for s in splits})


class Stream:
    """One learner on tiny tasks, without files, display and tracker."""

    def __init__(
        self,
        learner: Learner,
        tasks: list[Task],
        seed: int = 0,
        encoder: Callable[[], Encoder] = tiny_encoder,
        precision: str = "float32",
    ):
        self.learner = learner
        self.tasks = tasks
        self._seed, self._encoder = seed, encoder
        self.model = TaskModel(encoder(), seed, precision=precision)
        self.matrix = ScoreMatrix([task.name for task in tasks])
        padding = self.model.encoder.body.config.pad_token_id
        learner.attach(self.model, tasks=tasks, seed=seed, pad_id=padding)

    def fresh(self, learner: Learner, precision: str = "float32") -> "Stream":
        """A stream of the same tasks, on an encoder made as this one's was."""
        return Stream(learner, self.tasks, self._seed, self._encoder, precision)

    def learn(self, index: int) -> None:
        """Learn one task and fill its row."""
        fit(self.learner, self.tasks[index], SHORT)
        self.fill_row(index)

    def fill_row(self, index: int) -> None:
        """Evaluate the tasks up to one."""
        for position in range(index + 1):
            self.matrix.record(index, position, self.evaluate(self.tasks[position]))

    def run(self) -> ScoreMatrix:
        """Learn every task."""
        for index in range(len(self.tasks)):
            self.learn(index)
        return self.matrix

    def finish(self) -> None:
        """Learn every task and fill the last row alone."""
        for task in self.tasks:
            fit(self.learner, task, SHORT)
        self.fill_row(len(self.tasks) - 1)

    def evaluate(self, task: Task):
        """Evaluate one task."""
        return evaluate(self.learner, task, "test", 512, CPU)

    def digest(self, task: Task) -> str:
        """The digest of one task's logits, without its score."""
        return digest(logits_of(self.learner, [task], "test", 512, CPU)[0])

    def last_digests(self) -> dict[str, str]:
        """Digest of every task in the last row."""
        return {
            t.name: c.digest for t, c in zip(self.tasks, self.matrix.cells[-1], strict=True) if c
        }


def made_tasks(rows: int = 16) -> list[Task]:
    """Two, five and no classes (regression)."""
    return [made_task(n, labels, rows) for n, labels in (("a", 2), ("b", 5), ("c", None))]
