"""Reference learners: copies counted, what joint training takes, and the two without BERT."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from stream.data.task import Split, Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.learners._shared.fitted import Fitted
from stream.learners.finetune import Finetune
from stream.learners.independent import Independent
from stream.learners.joint import Joint
from stream.learners.majority import Majority
from stream.learners.tfidf import TfIdf
from stream.learners.workload import Epoch
from stream.report.progress import Display
from stream.run.accounting import count_stored
from stream.run.settings import with_learner
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task
from tests.composed import compose_run

# --- independent


def test_independent_is_finetune_on_each_task_alone(three_tasks: list[Task]) -> None:
    together = Stream(Independent(), three_tasks)
    together.finish()
    alone = {}
    for task in three_tasks:
        run = Stream(Finetune(), [task])
        run.finish()
        alone |= run.last_digests()
    assert together.last_digests() == alone


def test_independent_counts_n_copies_not_one_more(three_tasks: list[Task]) -> None:
    """One copy is what finetune stores, an idle pooler included; each further one what it reads."""
    run = Stream(Independent(), three_tasks)
    run.finish()
    encoder = run.model.encoder
    pooler = sum(p.numel() for n, p in encoder.named_parameters() if n.startswith("body.pooler."))
    for count in (1, 3):
        learned = three_tasks[:count]
        expected = count * (encoder.num_parameters() - pooler) + pooler
        expected += sum((16 + 1) * task.num_outputs for task in learned)
        assert count_stored(run.learner.stored_states(learned)) == (expected, 4 * expected)
    trained = sum(p.numel() for p in run.learner.trained_parameters().values())
    assert trained == encoder.num_parameters() - pooler + 16 + 1  # the regression's head


# --- joint


def drawn(run: Stream, task: Task, training=SHORT) -> list[tuple[str, tuple[int, ...]]]:
    """Task and rows of each batch; rows are told by their token ids, which are all different."""
    batches = list(run.learner.training_batches(task, Epoch(0, 1, training)))
    found = []
    for batch in batches:
        (part,) = batch.parts
        split = part.task.split("train")
        texts = {
            tuple(split.token_ids[split.offsets[i] : split.offsets[i + 1]]): i
            for i in range(len(split))
        }
        rows = zip(batch.input_ids.tolist(), batch.attention_mask.sum(1).tolist(), strict=True)
        found.append((part.task.name, tuple(texts[tuple(ids[:n])] for ids, n in rows)))
    return found


def sized_tasks() -> list[Task]:
    return [made_task("a", 2, rows=40), made_task("b", 5, rows=10), made_task("c", None, rows=20)]


@pytest.mark.parametrize("prefix", [False, True])
def test_joint_takes_from_each_task_what_its_own_training_would(*, prefix: bool) -> None:
    """40, 10 and 20 rows in batches of 8, at least 6 steps each: 2, 3 and 2 epochs."""
    tasks = sized_tasks()
    training = replace(SHORT, min_steps=6)
    run = Stream(Joint(prefix=prefix), tasks)
    turn = tasks[2] if prefix else tasks[0]
    assert run.learner.workload(turn, training)[:3] == (1, 10 + 6 + 6, 80 + 30 + 40)
    batches = drawn(run, turn, training)
    assert Counter(name for name, _ in batches) == {"a": 10, "b": 6, "c": 6}
    for task, epochs in zip(tasks, (2, 3, 2), strict=True):
        rows = Counter(row for name, batch in batches if name == task.name for row in batch)
        assert rows == dict.fromkeys(range(len(task.split("train"))), epochs)
    switches = sum(x[0] != y[0] for x, y in pairwise(batches))
    assert switches > 5  # mixed, not one task after the other
    if prefix:
        assert run.learner.workload(tasks[1], training)[:3] == (1, 16, 110)
        assert {name for name, _ in drawn(run, tasks[1], training)} == {"a", "b"}


def test_joint_batches_depend_on_the_seed_and_not_on_the_order() -> None:
    tasks = sized_tasks()
    first = drawn(Stream(Joint(), tasks), tasks[0])
    assert drawn(Stream(Joint(), tasks[::-1]), tasks[2]) == first
    assert drawn(Stream(Joint(), tasks, seed=1), tasks[0]) != first


def test_joint_learns_once_and_serves_every_row(three_tasks: list[Task]) -> None:
    run = Stream(Joint(), three_tasks)
    reports, trained = [], []
    for index in range(3):
        reports.append(fit(run.learner, three_tasks[index], SHORT))
        trained.append(set(run.learner.trained_parameters()))
        for position in range(3):
            run.matrix.record(index, position, run.evaluate(three_tasks[position]))
    assert [(r.steps, len(r.losses)) for r in reports] == [(12, 12), (0, 0), (0, 0)]
    assert {n for n in trained[0] if n.startswith("heads.")} == {
        f"heads.{task}.{kind}" for task in "abc" for kind in ("weight", "bias")
    }
    assert trained[1:] == [set(), set()]
    digests = {tuple(cell.digest for cell in row if cell) for row in run.matrix.cells}
    assert len(digests) == 1


def without_dropout(run: Stream) -> Stream:
    """Dropout is seeded by the task whose turn it is, the one thing in which these runs differ."""
    for module in run.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return run


def test_prefix_at_task_k_is_joint_on_the_first_k(three_tasks: list[Task]) -> None:
    prefix = without_dropout(Stream(Joint(prefix=True), three_tasks))
    prefix.run()
    for count in (1, 2, 3):
        once = without_dropout(Stream(Joint(), three_tasks[:count]))
        once.learn(0)
        expected = [once.evaluate(task).digest for task in three_tasks[:count]]
        row = prefix.matrix.cells[count - 1][:count]
        assert [cell.digest for cell in row if cell] == expected


@pytest.mark.parametrize(("prefix", "examples"), [(False, 140), (True, 80 + 100 + 140)])
def test_the_display_plans_the_work_of_joint_training(
    tmp_path: Path, *, prefix: bool, examples: int
) -> None:
    """Two epochs of 40, 10 and 20 rows once; with ``prefix`` of 40, of 50 and of 70."""
    tasks = sized_tasks()
    chosen = ["experiment=smoke", "learner=joint", f"learner.prefix={prefix}"]
    config, _ = compose_run(Path(__file__).parent.parent.parent / "conf", chosen)
    config = replace(with_learner(config), training=SHORT)
    Stream(config.learner, tasks)
    console = Console(file=StringIO(), width=200)
    with Display(console, tmp_path) as display:
        display.start(config, tasks)
    assert f" training steps, {examples} examples, " in console.file.getvalue()


# --- majority


def logits(learner: Fitted, task: Task, split: str = "test") -> np.ndarray:
    run = Stream(learner, [task])
    run.learn(0)
    return logits_of(learner, [task], split, 512, CPU)[0]


def relabelled(task: Task, labels: list[float]) -> Task:
    """The task with training labels of one's own."""
    train = task.split("train")
    values = np.resize(np.array(labels), len(train)).astype(train.labels.dtype)
    return replace(task, splits={**task.splits, "train": replace(train, labels=values)})


def test_majority_is_the_most_frequent_class() -> None:
    """24 rows: 6 of class 0, 12 of class 3, 6 of class 4, none of 1 and 2."""
    task = relabelled(made_task("a", 5), [3, 0, 3, 4])
    found = logits(Majority(), task)
    expected = np.log(np.array([7, 1, 1, 13, 7]) / 29)
    np.testing.assert_allclose(found, np.tile(expected, (24, 1)), rtol=1e-6)


def test_majority_of_scores_is_their_mean() -> None:
    task = relabelled(made_task("a", None), [0.5, 1.0, 4.5])
    np.testing.assert_allclose(logits(Majority(), task), np.full((24, 1), 2.0), rtol=1e-6)


def test_majority_keeps_one_tensor_and_never_runs_the_encoder(three_tasks: list[Task]) -> None:
    run = Stream(Majority(), three_tasks)
    run.model.encoder.forward = lambda batch: pytest.fail("the encoder was run")
    run.finish()
    assert [list(run.learner.served_state(t.name)) for t in three_tasks] == [
        [f"{name}.logits"] for name in "abc"
    ]
    assert count_stored(run.learner.stored_states(three_tasks)) == (2 + 5 + 1, 4 * 8)
    with pytest.raises(KeyError, match="was not learned"):
        run.learner.served_state("z")


@pytest.mark.parametrize("options", [{"lr": 1e-3}, {"head_lr": 1e-3}])
@pytest.mark.parametrize("kind", [Majority, TfIdf])
def test_learning_rates_without_effect_are_refused(kind: type, options: dict) -> None:
    with pytest.raises(UserError, match=r"learner\.(head_)?lr=0.001 has no effect with learner="):
        kind(**options)


# --- tfidf


def halved(task: Task) -> Task:
    """The task with each row as a pair of texts."""
    pairs = {n: replace(s, first_lengths=s.lengths // 2) for n, s in task.splits.items()}
    return replace(task, splits=pairs)


def words(split: Split) -> list[list[str]]:
    """Terms as strings, one after the other, as one would write it with no thought of speed."""
    texts = []
    for row in range(len(split)):
        ids = split.token_ids[split.offsets[row] : split.offsets[row + 1]].tolist()
        first = int(split.first_lengths[row])
        terms = []
        for which, text in enumerate((ids[:first], ids[first:])):
            terms += [f"{which}:{token}" for token in text]
            terms += [f"{which}:{x} {y}" for x, y in pairwise(text)]
        texts.append(terms)
    return texts


@pytest.mark.parametrize("as_pairs", [False, True])
@pytest.mark.parametrize("classes", [2, 5, None])
def test_tfidf_equals_scikit_learn_on_the_same_token_lists(
    classes: int | None, *, as_pairs: bool
) -> None:
    task = made_task("a", classes, rows=60)
    task = halved(task) if as_pairs else task
    learner = TfIdf(penalty=0.1)
    found = logits(learner, task)
    train, test = task.split("train"), task.split("test")
    vectorizer = TfidfVectorizer(analyzer=lambda text: text)
    features = vectorizer.fit_transform(words(train))
    unseen = vectorizer.transform(words(test))
    if classes is None:
        expected = Ridge(alpha=0.1).fit(features, train.labels).predict(unseen)[:, None]
    else:
        model = LogisticRegression(C=10, max_iter=1000).fit(features, train.labels)
        expected = model.decision_function(unseen)
        expected = np.stack([0 * expected, expected], axis=1) if classes == 2 else expected
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected) > 0.5
    assert learner.served_state("a")["a.terms"].shape == (len(vectorizer.vocabulary_),)


def test_tfidf_keeps_the_most_frequent_terms() -> None:
    task = made_task("a", 2, rows=60)
    learner = TfIdf(terms=7)
    logits(learner, task)
    state = learner.served_state("a")
    assert [tuple(t.shape) for t in state.values()] == [(7,), (7,), (7, 2), (2,)]
    counts = Counter(term for text in words(task.split("train")) for term in text)
    kept = [counts[f"0:{term}"] for term in state["a.terms"].tolist()]  # single tokens, all seven
    assert sorted(kept, reverse=True) == [number for _, number in counts.most_common(7)]


@pytest.mark.parametrize("present", [[1, 3], [2], [0, 1, 4]])
def test_tfidf_never_predicts_a_class_without_training_rows(present: list[int]) -> None:
    found = logits(TfIdf(), relabelled(made_task("a", 5), present))
    assert np.isfinite(found).all()
    assert set(found.argmax(1)) <= set(present)
    probabilities = torch.from_numpy(found).softmax(1)
    assert probabilities[:, [c for c in range(5) if c not in present]].max() == 0


def test_tfidf_reads_a_text_alike_in_any_batch(stream: Callable) -> None:
    task = made_task("a", 5)
    run = stream(TfIdf(), [task])
    run.learn(0)
    digests = {logits_of(run.learner, [task], "test", t, CPU)[0].tobytes() for t in (512, 16, 64)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"penalty": 0}, "penalty must be positive, got 0"), ({"terms": 0}, "at least 1, got 0")],
)
def test_tfidf_refuses_what_makes_no_sense(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        TfIdf(**options)
