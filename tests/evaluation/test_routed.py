"""Evaluation with inferred tasks, on tiny streams."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from stream.config.router import RouterConfig
from stream.data.task import Task
from stream.evaluation.evaluate import logits_of
from stream.evaluation.routed import Routing
from stream.learners import LEARNERS
from stream.models.task_model import TaskModel
from stream.record.matrix import Routed
from stream.routing import ROUTERS
from stream.routing.base import FeatureRouter, decide
from stream.routing.features import PretrainedFeatures
from stream.run.accounting import count_stored
from stream.training.loop import fit
from tests.builders import CPU, SHORT, made_task, tiny_encoder

WIDTH, TOKENS = 16, 512


class Inferred:
    """A learner and a router on a tiny stream."""

    def __init__(self, learner: str, tasks: Sequence[Task], shared=(), **router):
        config = RouterConfig(**router)
        encoder = tiny_encoder()
        self.model = TaskModel(encoder, 0)
        features = None
        if config.reads_features:
            features = PretrainedFeatures(encoder, features=config.features, precision="float32")
        self.learner, self.tasks = LEARNERS[learner](), tasks
        self.learner.attach(self.model, tasks=tasks, seed=0, pad_id=0)
        if features is not None:
            features.share(self.learner)
        made = ROUTERS[config.kind](config)
        self.routing = Routing(made, features, self.learner, CPU, TOKENS, shared)

    def learn(self, count: int | None = None) -> "Inferred":
        """Learn the first tasks."""
        for task in self.tasks[:count]:
            fit(self.learner, task, SHORT)
            self.routing.learn(task)
        return self

    def routed(self, index: int, learned: int | None = None) -> Routed:
        """Evaluate one of the learned tasks."""
        cell = self.routing.evaluate(
            self.tasks[index], "test", self.tasks[:learned], lambda task: task.name
        )
        assert cell.routed is not None
        return cell.routed

    def features_of(self, task: Task) -> np.ndarray:
        """The features of a task's test rows, in order."""
        assert self.routing.features is not None
        parts = list(self.routing.features.of(task, task.split("test"), 0, TOKENS))
        order = np.argsort(np.concatenate([places for places, _ in parts]))
        return np.concatenate([vectors for _, vectors in parts])[order]


def told(monkeypatch: pytest.MonkeyPatch, chosen: Sequence[int]) -> None:
    """Let every text be given to these tasks."""
    monkeypatch.setattr(Routing, "inferred", lambda *_: np.array(chosen))


@pytest.mark.parametrize(
    ("learner", "kind"), [("adapter", "mean"), ("finetune", "pooled"), ("diff_pruning", "mean")]
)
def test_features_are_the_pretrained_encoders_whatever_was_learned(
    learner: str, kind: str, three_tasks: list[Task]
) -> None:
    run = Inferred(learner, three_tasks, kind="class_mean", features=kind).learn(1)
    task, fresh = three_tasks[0], tiny_encoder().eval()
    split = task.split("test")
    for row, vector in enumerate(run.features_of(task)):
        ids = torch.from_numpy(split.token_ids[split.offsets[row] : split.offsets[row + 1]])
        with torch.no_grad():
            body = fresh.body(ids.long()[None], torch.ones(1, len(ids)))
        hidden = body.last_hidden_state[0].numpy()
        mean = hidden.mean(0)
        expected = mean / np.linalg.norm(mean) if kind == "mean" else hidden[0]
        np.testing.assert_allclose(vector, expected, atol=2e-6)


def test_what_is_stored_is_counted_once_and_exactly(three_tasks: list[Task]) -> None:
    """Means of 2 + 5 + 1 classes; a covariance; of the encoder what the learner does not keep."""
    read = sum(p.numel() for p in tiny_encoder().read_parameters().values())
    for learner, kind, expected in (
        ("adapter", "class_mean", 8 * WIDTH),
        ("adapter", "mahalanobis", 8 * WIDTH + WIDTH**2),
        ("finetune", "class_mean", 8 * WIDTH + read),
        ("tfidf", "class_mean", 8 * WIDTH + read),
    ):
        run = Inferred(learner, three_tasks, kind=kind).learn()
        own = run.learner.stored_states(three_tasks)
        without = count_stored(own)
        whole = count_stored([*own, *run.routing.stored_states()])
        assert whole[0] - without[0] == expected, learner
        in_four = read if learner != "adapter" else 0
        of_count = 8 if kind == "mahalanobis" else 0  # the rows
        assert whole[1] - without[1] == 8 * (expected - in_four) + 4 * in_four + of_count
    outputs = Inferred("adapter", [made_task("a"), made_task("b")], kind="entropy").learn()
    assert count_stored(outputs.routing.stored_states()) == (0, 0)


def test_texts_given_to_their_task_are_answered_as_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch, three_tasks: list[Task]
) -> None:
    run = Inferred("adapter", three_tasks, kind="class_mean").learn()
    for index, task in enumerate(three_tasks):
        told(monkeypatch, [index] * len(task.split("test")))
        cell = run.routing.evaluate(task, "test", three_tasks, lambda t: t.name)
        assert cell.routed is not None
        assert cell.routed.accuracy == 1.0
        assert cell.routed.score == cell.score
        assert cell.routed.counts[index] == 16


def test_texts_given_to_another_task_are_wrong_unless_labels_are_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = [made_task("a", 2), made_task("b", 5), made_task("c", 2)]
    chosen = [0] * 10 + [1] * 8 + [2] * 6
    told(monkeypatch, chosen)
    targets = tasks[0].split("test").labels
    for shared in ((), [["c", "a"]]):
        run = Inferred("adapter", tasks, shared, kind="class_mean").learn()
        (own,) = logits_of(run.learner, [tasks[0]], "test", TOKENS, CPU)
        right = own.argmax(1) == targets
        right[10:] = False
        if shared:
            asked = replace(tasks[2], splits={"test": tasks[0].split("test")})
            (theirs,) = logits_of(run.learner, [asked], "test", TOKENS, CPU)
            right[18:] = theirs.argmax(1)[18:] == targets[18:]
        found = run.routed(0)
        assert found.score == pytest.approx(right.mean())
        assert (found.accuracy, found.counts) == (10 / 24, [10, 8, 6])


def test_every_kind_chooses_by_its_costs(three_tasks: list[Task]) -> None:
    tasks = three_tasks[:2]
    for kind in ROUTERS:
        run = Inferred("adapter", tasks, kind=kind).learn()
        router = run.routing.router
        chosen = run.routing.inferred(tasks[1], "test", tasks)
        if isinstance(router, FeatureRouter):
            costs = router.costs(run.features_of(tasks[1]), ["a", "b"])
        else:
            asked = [replace(task, splits={"test": tasks[1].split("test")}) for task in tasks]
            logits = [logits_of(run.learner, [one], "test", TOKENS, CPU)[0] for one in asked]
            costs = np.stack([router.cost(found.astype(np.float64)) for found in logits], axis=1)
        assert chosen.tolist() == decide(costs).tolist()
        assert run.routed(1).passes == 2
        assert run.routed(1).accuracy == (chosen == 1).mean()


def test_outputs_are_computed_anew_only_where_they_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = [made_task("a"), made_task("b"), made_task("c")]
    run = Inferred("adapter", tasks, kind="entropy").learn()
    asked: list[str] = []
    original = Routing.answers

    def noting(self, rows, split, task, places=None):
        asked.append(f"{task.name} for {rows.name}")
        return original(self, rows, split, task, places)

    monkeypatch.setattr(Routing, "answers", noting)
    state = {"a": "1", "b": "1", "c": "1"}
    chosen = run.routing.inferred(tasks[0], "test", tasks, lambda t: state[t.name])
    assert asked == ["a for a", "b for a", "c for a"]
    state["b"] = "2"
    again = run.routing.inferred(tasks[0], "test", tasks, lambda t: state[t.name])
    assert asked[3:] == ["b for a"]
    assert again.tolist() == chosen.tolist()
