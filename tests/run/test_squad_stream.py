"""Span tasks in a stream: loss, serving, learning, whole runs beside classes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from stream.cli.main import main
from stream.data.batching import collate
from stream.data.spans.answers import answer_f1
from stream.data.task import Task
from stream.evaluation.evaluate import digest, logits_of
from stream.learners.adapter import Adapter
from stream.learners.ewc import Ewc
from stream.learners.finetune import Finetune
from stream.learners.replay import Replay
from stream.metrics.flips import decode_correct
from stream.models.heads import Head
from stream.models.losses import part_loss
from stream.models.task_model import TaskModel
from stream.run.export import export_task
from stream.run.predict import Service
from stream.run.verify import verify
from stream.seeding import numpy_generator
from stream.training.loop import fit
from tests.builders import CPU, SHORT, Stream, made_task, tiny_encoder
from tests.data.squad import as_rows, encoder, made_rows, spec
from tests.run.program import run_plain
from tests.training.test_engine import cuda, learned

# Learning.


@pytest.fixture
def span_task(tmp_path: Path) -> Task:
    """A span task whose token ids fit the tiny encoder."""
    splits = {}
    for seed, name in enumerate(("train", "validation", "test")):
        rows = [
            {**r, "context": r["context"].replace("naïve words 😀 ", "")} for r in made_rows(24)
        ]
        for row in rows:
            row["answer_start"] = [row["context"].index(row["answers"][0])] * 2
        split = encoder(tmp_path, 30).encode(as_rows(rows), f"{name}{seed}")
        ids = (split.token_ids % 55 + 5).astype(np.int32)
        splits[name] = replace(split, token_ids=ids)
    return Task("s", spec(), splits, {name: name for name in splits})


def test_loss_is_the_mean_of_two_cross_entropies(span_task: Task) -> None:
    rows = np.array([0, 5, 9])
    batch = collate([(span_task, span_task.split("train"), rows)], 0).padded(3, 48)
    (labels,) = batch.labels
    generator = np.random.default_rng(2)
    logits = generator.normal(size=(3, 2 * batch.width)) * 3
    expected = 0.0
    for row, (first, last, start, stop) in zip(logits, labels.tolist(), strict=True):
        allowed = [0, *range(start, stop)]
        for end, right in enumerate((first, last)):
            values = row[end::2][allowed]
            expected += np.log(np.exp(values).sum()) - row[end::2][right]
    tensor = torch.from_numpy(logits.astype(np.float32)).requires_grad_()
    loss = part_loss(batch.parts[0], tensor, labels)
    assert loss.item() == pytest.approx(expected / 2, rel=1e-6)
    loss.backward()
    assert tensor.grad is not None
    gradient = tensor.grad.unflatten(1, (-1, 2))
    for row, (_, _, start, stop) in enumerate(labels.tolist()):
        assert gradient[row, 1:start].abs().max() == 0  # neither the question nor padding
        assert gradient[row, stop:].abs().max() == 0
        assert gradient[row, start:stop].abs().min() > 0


def test_fisher_is_of_the_likelihood_of_both_ends(span_task: Task) -> None:
    """log p = log p(first) + log p(last), by hand for each row."""
    learner = Ewc(fisher_rows=4)
    run = Stream(learner, [span_task])
    learner.start(span_task)
    found = learner.fisher(span_task)
    split, expected = span_task.split("train"), {n: torch.zeros_like(t) for n, t in found.items()}
    order = numpy_generator(0, "fisher", "s").permutation(len(split))[:4]
    run.model.eval()
    for row in order:
        batch = collate([(span_task, split, np.array([row]))], 0)
        ends = run.model(batch)[0].unflatten(1, (-1, 2))[0]
        first, last, start, stop = batch.labels[0][0].tolist()
        inside = torch.tensor([0, *range(start, stop)])
        parts = [
            ends[inside, end].logsumexp(0) - ends[right, end]
            for end, right in enumerate((first, last))
        ]
        sum(parts).backward()
        for name, parameter in learner.shared_parameters().items():
            if parameter.grad is not None:
                expected[name] += parameter.grad**2 / 4
        run.model.zero_grad(set_to_none=True)
    for name, fisher in found.items():
        torch.testing.assert_close(fisher, expected[name], rtol=1e-3, atol=1e-9)
    assert sum(float(f.sum()) for f in found.values()) > 0


def test_a_pass_serves_texts_and_tokens(span_task: Task) -> None:
    """Logits of a span task are its head's of every token; a mixed batch changes no other task."""
    model = TaskModel(tiny_encoder(), 0).eval()
    other = made_task("a", 3)
    for task in (span_task, other):
        model.add_head(task)
    assert model.head("s").outputs == 2
    parts = [(span_task, span_task.split("test"), np.arange(3))]
    batch = collate([*parts, (other, other.split("test"), np.arange(4))], 0)
    with torch.no_grad():
        spans, classes = model(batch)
        hidden = model.encoder.states(batch)[1]
        (alone,) = model(batch.only(slice(1, 2)))
    assert spans.shape == (3, 2 * batch.width)
    assert classes.shape == (4, 3)
    torch.testing.assert_close(classes, alone)
    head, mask = model.head("s"), batch.attention_mask[:3].bool()
    expected = hidden[:3] @ head.weight.T + head.bias
    torch.testing.assert_close(spans.unflatten(1, (-1, 2))[mask], expected[mask])
    assert (spans.unflatten(1, (-1, 2))[~mask] == Head.NEVER).all()


@pytest.mark.parametrize("make", [Adapter, lambda: Replay(lr=1e-3, budget=8, replayed=4)])
def test_a_stream_with_spans(make: Callable, stream: Callable, span_task: Task) -> None:
    run = stream(make(), [made_task("a", 2), span_task, made_task("b", None)])
    matrix = run.run()
    cell = matrix.cells[1][1]
    assert 0 <= cell.score <= 1
    assert len(decode_correct(cell.correct, 24)) == 24
    if isinstance(run.learner, Adapter):
        assert matrix.memory() == (2, 2)
    batched = [logits_of(run.learner, [span_task], "test", n, CPU)[0] for n in (64, 512)]
    width = 2 * -(-span_task.split("test").lengths.max() // 8) * 8
    assert [logits.shape for logits in batched] == [(24, width)] * 2  # padded as the longest row
    np.testing.assert_allclose(*batched, rtol=1e-4, atol=1e-5)
    if run.learner.serves_together:
        shared = logits_of(run.learner, run.tasks, "test", 512, CPU)[1]
        np.testing.assert_allclose(shared[:, :width], batched[0], rtol=1e-4, atol=1e-5)
    buffer = run.learner.buffer
    assert buffer is None or buffer.examples == 24


def test_it_learns_where_answers_stand(stream: Callable, span_task: Task) -> None:
    """The gradient reaches the tokens: a short training raises the score on its own rows."""
    learner = Replay(lr=5e-3, head_lr=5e-3)
    run = stream(learner, [span_task])
    before = run.evaluate(span_task).score
    for _ in range(8):
        fit(learner, span_task, SHORT)
    assert run.evaluate(span_task).score > before + 0.2


@pytest.mark.gpu
@cuda
@pytest.mark.parametrize("make", [Adapter, Finetune])
def test_captured_steps_learn_spans_as_eager_ones_do(make: Callable, span_task: Task) -> None:
    tasks = [span_task, made_task("a", 2), replace(span_task, name="t")]
    expected, found = (learned(make, tasks, engine)[1] for engine in ("eager", "captured"))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)


# The whole program, from files.


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for number, split in enumerate(("train", "validation", "test")):
        (folder / "squad").mkdir(exist_ok=True)
        (folder / "sst2").mkdir(exist_ok=True)
        rows = made_rows(40 if split == "train" else 16, seed=number)
        pq.write_table(pa.Table.from_pylist(rows), folder / "squad" / f"{split}.parquet")
        texts = [f"{split} film {i} is {'fine' if i % 2 else 'poor'}" for i in range(32)]
        table = pa.table({"sentence": texts, "label": [i % 2 for i in range(32)]})
        pq.write_table(table, folder / "sst2" / f"{split}.parquet")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "order"),
    [
        ("adapter", ["squad", "sst2"]),
        ("finetune", ["squad", "sst2"]),
        ("finetune", ["sst2", "squad"]),
    ],
)
def test_a_run_over_classes_and_spans(
    learner: str, order: list[str], root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    code, _, err = run_plain(
        tmp_path,
        f"learner={learner}",
        "backbone=tiny",
        "tracking=none",
        "device=cpu",
        "training.min_steps=8",
        f"task=[{','.join(order)}]",
        "data=files",
        f"data.root={root}",
        "leaks=warn",
        "probe.every=4",
        f"hydra.run.dir={folder}",
    )
    assert (code, err) == (0, "")
    results = json.loads((folder / "results.json").read_text())
    assert results["status"] == "complete"
    column = order.index("squad")
    assert results["metric_names"][column] == "answer_f1"
    promised = learner == "adapter"
    kept = {"promised": promised, "tasks_checked": 1, "tasks_identical": int(promised)}
    assert results["memory"] == kept
    first, last = (results["cells"][row][column] for row in (column, -1))
    assert (first["digest"] == last["digest"]) == (promised or column == 1)
    assert results["ledger"]["tasks"][column]["trained_parameters"] > 2 * 32
    assert results["data"]["accounts"]["squad"]["train"]["kept"] == 40
    assert all(check.ok for check in verify(folder, "cpu"))

    rows = made_rows(16, seed=2)
    texts = [(row["question"], row["context"]) for row in rows]
    served = [folder]
    if promised:
        served.append(tmp_path / "squad")
        export_task(folder, "squad", served[-1])
    for place in served:
        service = Service(place, "cpu")
        assert digest(service.logits("squad", texts)) == last["digest"]
        answers = [answer.label or "" for answer in service.predict("squad", texts)]
        worth = [
            max(answer_f1(answer, right) for right in row["answers"])
            for answer, row in zip(answers, rows, strict=True)
        ]
        assert last["score"] == pytest.approx(np.mean(worth))


def test_show_accounts_for_answers(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "show", "squad", "data=files", f"data.root={root}", "backbone=tiny"]) == 0
    shown = capsys.readouterr().out
    assert "SQuAD: span, judged by answer_f1" in shown
    assert "40 encoded, 0 of them cut; 40 with the whole answer inside" in shown
