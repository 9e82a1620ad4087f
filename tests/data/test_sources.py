"""The real data of all 40 tasks, and the generated twins, through the whole loading path."""
# ruff: noqa: RUF001 - punctuation that encodings differ in

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream.config.data import FilesData, GeneratedData, HubData
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.prepare.leakage import handle_leaks
from stream.errors import UserError

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no real data at {SHARED}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": None},
        {"labels": ["one"]},
        {"labels": ["a", "a"]},
        {"kind": "triple"},
        {"metric": "spearman"},
        {"metric": "f1", "labels": ["a", "b", "c"]},
        {"labels": None, "score_range": [5.0, 0.0], "metric": "spearman"},
    ],
)
def test_contradictory_specifications_are_refused(wrong: dict) -> None:
    right = {"title": "t", "kind": "single", "labels": ["a", "b"], "metric": "accuracy"}
    TaskSpec(**right, source="made")
    with pytest.raises(UserError):
        TaskSpec(**{**right, **wrong}, source="made")


def with_twin(specs: dict[str, TaskSpec]) -> dict[str, TaskSpec]:
    """Questions and their answers have no generated twin."""
    return {name: spec for name, spec in specs.items() if spec.kind != "span"}


def test_generated_rows_have_the_shape_of_the_task(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    sizes = {"train": 40, "validation": 20, "test": 20}
    data = GeneratedData(**sizes)
    for name, spec in with_twin(all_specs).items():
        loaded = load_task(data, name, spec, tmp_path)
        again = load_task(data, name, spec, tmp_path)
        assert {s: len(r) for s, r in loaded.rows.items()} == sizes
        train = loaded.rows["train"]
        assert train.digest() == again.rows["train"].digest()
        assert all(len(texts) == len(spec.files.text) for texts in train.texts)
        if spec.labels is not None:  # the first rows are of different classes
            assert len(set(train.labels)) == min(len(spec.labels), 40)
    other = load_task(GeneratedData(seed=1, train=40), "sst2", all_specs["sst2"], tmp_path)
    first = load_task(data, "sst2", all_specs["sst2"], tmp_path)
    assert other.rows["train"].texts != first.rows["train"].texts


def test_generated_tasks_do_not_leak(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    data = GeneratedData(train=128, validation=32, test=32)
    specs = with_twin(all_specs)
    loaded = {name: load_task(data, name, spec, tmp_path) for name, spec in specs.items()}
    assert handle_leaks(loaded, "error") == []


def test_a_root_that_is_not_there(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        load_task(FilesData(root=str(tmp_path / "no")), "sst2", all_specs["sst2"], tmp_path)
    with pytest.raises(UserError, match="sst2"):
        load_task(FilesData(root=str(tmp_path)), "sst2", all_specs["sst2"], tmp_path)


@REAL
def test_every_real_task_loads_without_a_drop(
    all_specs: dict[str, TaskSpec], tmp_path: Path
) -> None:
    of_streams = json.loads((SHARED / "streams.json").read_text())["tasks"]
    published = json.loads((SHARED / "tasks.json").read_text()) | of_streams
    assert set(published) == set(with_twin(all_specs))  # SQuAD is not among the real data
    loaded = {}
    for name, facts in published.items():
        spec = all_specs[name]
        # The two columns of AG News are one text, as they are in the only column of the hub.
        kind = "single" if name == "ag_news" else facts["kind"]
        assert (spec.kind, spec.labels) == (kind, facts["labels"])
        columns = [column for of_field in spec.files.text_columns for column in of_field]
        assert (spec.metric, columns) == (facts["metric"], facts["columns"])
        loaded[name] = load_task(FilesData(root=str(SHARED)), name, spec, tmp_path)
        for split, rows in facts["rows"].items():
            account = loaded[name].accounts[split]
            assert (account.read, account.kept, account.dropped) == (rows, rows, {})
            if spec.labels is not None:
                found = np.unique(loaded[name].rows[split].labels)
                assert set(found) == set(range(len(spec.labels)))
    found = handle_leaks(loaded, "drop")
    leaks = {(leak.train_task, leak.held_out_task, leak.split): leak.count for leak in found}
    # The counts of pairs in ../shared/data/README.md, "Shared texts".
    assert leaks["stsb", "mrpc", "test"] == 498
    assert leaks["stsb", "mrpc", "validation"] == 48
    assert leaks["mrpc", "stsb", "test"] == 119
    assert leaks["mrpc", "stsb", "validation"] == 110
    of_pairs = {(a, b) for a, b, _ in leaks if "clinc150" not in {a, b}}
    assert of_pairs == {("stsb", "mrpc"), ("mrpc", "stsb")}
    # ../shared/data/STREAMS.md: short texts such as "good day" and "I broke my card".
    with_clinc = {pair: n for pair, n in leaks.items() if pair[:2] not in of_pairs}
    assert with_clinc == {
        ("sst2", "clinc150", "validation"): 1,
        ("sst2", "clinc150", "test"): 1,
        ("clinc150", "banking77", "test"): 2,
        ("banking77", "clinc150", "validation"): 1,
    }
    train = loaded["stsb"].accounts["train"]
    assert train.read == train.kept + train.dropped["leak"] == published["stsb"]["rows"]["train"]


def test_files_are_taken_as_published(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    """Stand-ins in the shape of the originals: names, columns, separators, label first."""
    sms = [("ham" if i % 3 else "spam", f'"message {i} never closes') for i in range(300)]
    lines = "".join(f"{label}\t{text}\n" for label, text in sms)
    (tmp_path / "SMSSpamCollection").write_text(lines, encoding="utf-8")
    spec = all_specs["sms_spam"]
    assert spec.original.rows == {"all": 5574}  # the file as published; the stand-in is smaller
    spec = replace(spec, original=replace(spec.original, rows={}))
    loaded = load_task(FilesData(root=str(tmp_path)), "sms_spam", spec, tmp_path)
    assert sum(account.read for account in loaded.accounts.values()) == 300
    texts = {text for rows in loaded.rows.values() for (text,) in rows.texts}
    assert texts == {text for _, text in sms}

    nested = tmp_path / "crowdflower" / "progressive-tweet-sentiment.csv"
    nested.parent.mkdir()
    stance = "q1_from_reading_the_tweet_which_is_the_stance_towards_the_target"
    answers = ["FOR: for it", "AGAINST: against it", "NEUTRAL: neither", "NONE OF THE ABOVE: none"]
    body = "".join(f'"été, tweet {i}",{answers[i % 4]}\n' for i in range(400))
    nested.write_text(f"tweet,{stance}\n{body}", encoding="latin-1")
    name = "crowdflower_progressive_stance"
    loaded = load_task(FilesData(root=str(tmp_path)), name, all_specs[name], tmp_path)
    assert sum(account.kept for account in loaded.accounts.values()) == 400
    row = loaded.rows["train"].texts[0][0]
    number = int(row.rpartition(" ")[2])
    label = all_specs[name].labels[loaded.rows["train"].labels[0]]
    assert row.startswith("été, tweet")
    assert answers[number % 4].startswith(label)


CROWD = {  # a file as published: its text column, its rows of (label, how many), its encoding
    "Airline-Sentiment-2-w-AA.csv": ("text", "airline_sentiment", "mac_roman"),
    "Corporate-messaging-DFE.csv": ("text", "category", "mac_roman"),
    "socialmedia-disaster-tweets-DFE.csv": ("text", "choose_one", "mac_roman"),
    "Political-media-DFE.csv": ("text", "audience", "mac_roman"),
    "1377884570_tweet_global_warming.csv": ("tweet", "existence", "cp1252"),
}


@pytest.mark.parametrize(
    ("task", "file", "labels", "left_out"),
    [
        ("airline", "Airline-Sentiment-2-w-AA.csv", ["negative", "neutral", "positive"], []),
        ("corporate_messaging", "Corporate-messaging-DFE.csv", ["Action", "Dialogue"], []),
        (
            "disasters",
            "socialmedia-disaster-tweets-DFE.csv",
            ["Relevant", "Not Relevant"],
            ["Can't Decide"],
        ),
        ("political_audience", "Political-media-DFE.csv", ["national", "constituency"], []),
        (
            "global_warming",
            "1377884570_tweet_global_warming.csv",
            ["Yes", "No", "Y", "N"],
            ["NA", "N/A"],
        ),
    ],
)
def test_crowdflower_files_as_published(
    all_specs: dict[str, TaskSpec],
    tmp_path: Path,
    task: str,
    file: str,
    labels: list[str],
    left_out: list[str],
) -> None:
    """Old Macs wrote most of them; what was UTF-8 before stays as it was damaged."""
    text, label, encoding = CROWD[file]
    late = "so “late” – don’t"
    damaged = late.encode().decode("cp1252", "ignore") if encoding == "mac_roman" else late
    rows = [
        (f"{number}: don’t go, {damaged}", labels[number % len(labels)]) for number in range(90)
    ]
    rows += [(f"not this, {number}", value) for number, value in enumerate(left_out * 3)]
    lines = "".join(
        f'{number},"{words}",0.5,{name}\r\n' for number, (words, name) in enumerate(rows)
    )
    content = f"_unit_id,{text},{label}:confidence,{label}\r\n{lines}"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / file).write_bytes(content.encode(encoding, "ignore"))
    name = f"crowdflower_{task}"
    loaded = load_task(FilesData(root=str(tmp_path)), name, all_specs[name], tmp_path)
    assert sum(account.kept for account in loaded.accounts.values()) == 90
    dropped = {k: v for account in loaded.accounts.values() for k, v in account.dropped.items()}
    assert dropped == ({"excluded_label": 3 * len(left_out)} if left_out else {})
    texts = [words for split in loaded.rows.values() for (words,) in split.texts]
    assert all("don’t go" in words for words in texts)
    assert {
        account.dialect.split(",")[0].split(" ")[0] for account in loaded.accounts.values()
    } == {encoding}


def test_progressive_tweets_as_published(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    """The column of the stance is one of three that begin alike; opinions are long answers."""
    stance = (
        "q1_from_reading_the_tweet_which_of_the_options_below_is_most_likely_to_be_true_about_the_"
        "stance_or_outlook_of_the_tweeter_towards_the_target"
    )
    opinion = "q2_which_of_the_options_below_is_true_about_the_opinion_in_the_tweet"
    stances = ["FOR: for it", "AGAINST: against it", "NEUTRAL: neither", "NONE OF THE ABOVE: no"]
    opinions = [
        "1.  The tweet explicitly expresses opinion about the target, or a part of it.",
        "2. The tweet does NOT express opinion about the target but it HAS opinion about something "
        "or someone other than the target.",
        "3.  The tweet is not explicitly expressing opinion.",
    ]
    header = f"{stance},{stance}:confidence,{opinion},{opinion}:confidence,{stance}_gold,tweet"
    lines = "".join(
        f'"{stances[n % 4]}",1,"{opinions[n % 3]}",1,,"tweet {n}"\n' for n in range(240)
    )
    (tmp_path / "progressive-tweet-sentiment.csv").write_text(f"{header}\n{lines}")
    for task, answers in (("stance", 4), ("opinion", 3)):
        name = f"crowdflower_progressive_{task}"
        spec = all_specs[name]
        loaded = load_task(FilesData(root=str(tmp_path)), name, spec, tmp_path)
        assert sum(account.kept for account in loaded.accounts.values()) == 240
        for (words,), label in zip(
            loaded.rows["train"].texts, loaded.rows["train"].labels, strict=True
        ):
            number = int(words.split()[1]) % answers
            order = ["FOR", "AGAINST", "NEUTRAL", "NONE OF THE ABOVE"]
            assert spec.labels is not None
            expected = order[number] if task == "stance" else spec.labels[number]
            assert spec.labels[label] == expected


def test_every_task_says_where_it_is_on_the_hub(all_specs: dict[str, TaskSpec]) -> None:
    for name, spec in all_specs.items():
        assert (spec.hub.id is None) == (spec.hub.missing is not None), name
        assert spec.hub.text, name
        assert spec.hub.revision in (None, "refs/convert/parquet"), name
        assert "test" not in spec.hub.splits.values() or "glue" not in str(spec.hub.id), name
    no_id = {name for name, spec in all_specs.items() if spec.hub.id is None}
    assert all(all_specs[name].original.text for name in no_id)


def test_no_hub_id_is_said_with_the_way_on(all_specs: dict[str, TaskSpec], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no hub id is known.*newsCorpora\.csv.*data=files"):
        load_task(HubData(), "news_aggregator", all_specs["news_aggregator"], tmp_path)
