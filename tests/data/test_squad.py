"""Span tasks: how answers are judged, where they stand among the tokens, which rows are kept."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config.data import GeneratedData
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.prepare.rows import account_rows
from stream.data.sources.files import read_files
from stream.data.sources.hub import read_arrow
from stream.data.spans.answers import (
    MAX_ANSWER_TOKENS,
    Answers,
    answer_f1,
    best_span,
    exact_match,
    normalised,
)
from stream.data.spans.tokens import answers_in
from stream.data.table import SourceTable
from stream.data.task import Rows, Task
from stream.errors import UserError
from stream.evaluation.evaluate import correctness
from stream.evaluation.task_metrics import score
from stream.learners.majority import Majority
from stream.metrics.flips import decode_correct
from stream.models.heads import Head
from stream.models.task_model import TaskModel
from tests.builders import tiny_encoder
from tests.data.hub_process import loaded_from
from tests.data.hub_server import Hub
from tests.data.squad import as_rows, encoder, made_rows, spec

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
    for size in [1, 2, 7, MAX_ANSWER_TOKENS, MAX_ANSWER_TOKENS + 1, 90]:
        starts, ends = generator.normal(size=(2, size)).astype(np.float32)
        sums = {
            (i, j): float(starts[i]) + float(ends[j])
            for i in range(size)
            for j in range(i, min(size, i + MAX_ANSWER_TOKENS))
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
    assert answers.select(np.array([1])).predicted(logits[1:]) == ["Bob."]
    nothing = Answers(("",), (("x",),), places, np.array([0]), np.array([[0, 0]]))
    assert nothing.predicted(logits[:1]) == [""]


# From characters to tokens.


def test_the_tokens_of_an_answer_are_its_text(tmp_path: Path) -> None:
    rows = made_rows(60)
    split = encoder(tmp_path).encode(as_rows(rows), "hash")
    again = encoder(tmp_path).encode(as_rows(rows), "hash")  # from the cache
    assert isinstance(again.labels, np.memmap)
    for found in (split, again, split.select(np.arange(60))):
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
    low, high = split.answers.char_spans[first, 0], split.answers.char_spans[last, 1]
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


@pytest.mark.slow
def test_the_hubs_own_form_is_read_with_titles_apart(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
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
    made = all_specs["squad"]
    assert made.hub is not None
    squad = replace(made, hub=replace(made.hub, rows={"train": 90, "test": 10}))
    accounts = loaded_from(hub, {"squad": squad}, tmp_path)["squad"].accounts
    kept = {split: account.kept for split, account in accounts.items()}
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
    with pytest.raises(UserError, match="answer_f1 is not for labels of kind 'class'"):
        TaskSpec(title="t", kind="single", labels=["a", "b"], metric="answer_f1", source="made")


def test_what_a_span_task_cannot_have_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no questions and answers are generated"):
        load_task(GeneratedData(), "squad", spec(), tmp_path)
    with pytest.raises(UserError, match="majority cannot learn where answers stand: s"):
        Majority().attach(
            TaskModel(tiny_encoder(), 0), tasks=[Task("s", spec(), {}, {})], seed=0, pad_id=0
        )
