"""Tokenizers of every kind of family mark where texts end; the ids are written out by hand."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from tokenizers import processors

from stream.data.layout import Layout
from stream.data.task import Rows
from stream.data.text_encoder import FORMAT, TextEncoder

LENGTH = 10
END = "e:1 $A"  # a name that a template would read otherwise
BYTES = {piece: i for i, piece in enumerate([END, "BEGIN", "Ġ", "a", "b", "c", "Ġa", "Ġb", "Ġc"])}
BYTE_MERGES = [("Ġ", "a"), ("Ġ", "b"), ("Ġ", "c")]
PIECES = ["<pad>", "</s>", "<s>", "<unk>", "▁", "a", "b", "c", "▁a", "▁b", "▁c", "<mask>"]
NUMBERS = {piece: i for i, piece in enumerate(PIECES)}
MERGES = [("▁", "a"), ("▁", "b"), ("▁", "c")]


def of_bytes(kind: str, **settings: Any) -> Any:
    named = {"eos_token": END, "unk_token": END, **settings}
    return getattr(transformers, kind)(vocab=BYTES, merges=BYTE_MERGES, **named)


def of_pieces(kind: str, **settings: Any) -> Any:
    named = {"bos_token": "<s>", "eos_token": "</s>", **settings}
    return getattr(transformers, kind)(vocab=NUMBERS, merges=MERGES, **named)


def t5() -> Any:
    pieces = [(piece, -1.0 - i) for i, piece in enumerate(PIECES)]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=0)


def llama_3() -> Any:
    """What precedes a text is in a list of processors, of which another trims characters."""
    made = of_bytes("GPT2Tokenizer", bos_token="BEGIN", pad_token=None)
    begins = processors.TemplateProcessing(
        single="BEGIN $A", pair="BEGIN $A BEGIN:1 $B:1", special_tokens=[("BEGIN", 1)]
    )
    made.backend_tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=True), begins]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made.backend_tokenizer, bos_token="BEGIN", eos_token=END
    )


# (tokenizer, special tokens in front, padding, ids of "a b", of the pair of it with "c", and of a
# pair of 5 and 8 words: as many as there is room for of each, the longer one losing its words)
KINDS: dict[str, tuple[Callable[[], Any], int, int, list[list[int]]]] = {
    "roberta": (
        lambda: of_bytes("RobertaTokenizer", cls_token="BEGIN", sep_token=END, pad_token="Ġ"),
        *(1, 2),
        [[1, 3, 7, 0], [1, 3, 7, 0, 0, 5, 0], [1, 3, 7, 8, 0, 0, 5, 8, 8, 0]],
    ),
    "t5": (
        *(t5, 0, 0),
        [[8, 9, 1], [8, 9, 1, 10, 1], [8, 9, 10, 8, 1, 10, 10, 10, 8, 1]],
    ),
    "gpt2": (
        *(lambda: of_bytes("GPT2Tokenizer", bos_token=END), 0, 0),
        [[3, 7, 0], [3, 7, 0, 5, 0], [3, 7, 8, 6, 0, 5, 8, 8, 6, 0]],
    ),
    "qwen": (
        *(lambda: of_bytes("Qwen2Tokenizer", pad_token="BEGIN"), 0, 1),
        [[3, 7, 0], [3, 7, 0, 5, 0], [3, 7, 8, 6, 0, 5, 8, 8, 6, 0]],
    ),
    "llama": (
        *(lambda: of_pieces("LlamaTokenizer", add_bos_token=True), 1, 1),
        [[2, 8, 9, 1], [2, 8, 9, 1, 10, 1], [2, 8, 9, 10, 1, 10, 10, 10, 8, 1]],
    ),
    "llama 3": (
        *(llama_3, 1, 0),
        [[1, 3, 7, 0], [1, 3, 7, 0, 5, 0], [1, 3, 7, 8, 0, 5, 8, 8, 6, 0]],
    ),
    "gemma": (
        *(lambda: of_pieces("GemmaTokenizer", add_bos_token=True), 1, 0),
        [[2, 5, 9, 1], [2, 5, 9, 1, 7, 1], [2, 5, 9, 10, 1, 7, 10, 10, 8, 1]],
    ),
    "with an end of its own": (
        *(lambda: of_pieces("LlamaTokenizer", add_bos_token=True, add_eos_token=True), 1, 1),
        [[2, 8, 9, 1], [2, 8, 9, 1, 2, 10, 1], [2, 8, 9, 10, 1, 2, 10, 10, 10, 1]],
    ),
}
ROWS = [("a b",), ("a b", "c"), ("a b c a b", "c c c a b c c c")]


def text_encoder(folder: Path, kind: str, max_length: int = LENGTH) -> TextEncoder:
    KINDS[kind][0]().save_pretrained(folder / "files")
    return TextEncoder(folder / "files", max_length, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_pairs_end_in_a_token_of_their_own(tmp_path: Path, kind: str) -> None:
    _, leading, padding, wanted = KINDS[kind]
    ours = text_encoder(tmp_path, kind)
    assert [ours.encode_now([row]).token_ids.tolist() for row in ROWS] == wanted
    assert (ours.leading, ours.pad_id) == (leading, padding)
    assert [ours.encode_now([row]).truncated for row in ROWS] == [0, 0, 1]


def test_the_second_text_of_a_pair_is_known_where_the_mark_is_ours(tmp_path: Path) -> None:
    split = text_encoder(tmp_path, "gpt2").encode_now(ROWS[1:])
    assert split.first_lengths.tolist() == [3, 5]  # a b END; a b c a END
    split = text_encoder(tmp_path, "t5").encode_now(ROWS[1:])
    assert split.first_lengths.tolist() == split.lengths.tolist()


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("gpt2", [3, 6, 6, 7, 7, 0, 5, 8, 0]),
        ("llama 3", [3, 6, 6, 7, 7, 0, 5, 8, 0]),
        ("t5", [8, 8, 8, 9, 9, 1, 10, 10, 1]),
    ],
)
def test_fields_of_a_long_row_are_cut_and_marks_stay(
    tmp_path: Path, kind: str, cut: list[int]
) -> None:
    """Three fields in two segments; the longest loses words until there is room."""
    layout = Layout(((0, " ", 1), (2,)))
    row = ("a a a a a a a a", "b b b", "c c c c c")
    leading = KINDS[kind][1]
    ours = text_encoder(tmp_path, kind, 9 + leading)
    ids = ours.encode_now([row], layout).token_ids.tolist()
    assert ids == [1] * leading + cut


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_found_among_the_tokens_of_its_context(tmp_path: Path, kind: str) -> None:
    """The question stays whole; what answers is where its characters are."""
    ours = text_encoder(tmp_path, kind, 14)
    answers = np.fromiter([(("b", 4),)], object)
    split = ours.encode(Rows((("c c", "a c b a a a a a a a a"),), answers), "rows")
    first, last, start, stop = split.labels[0].tolist()
    assert split.truncated == 1
    assert split.lengths.tolist() == [14]
    assert stop == 13  # all but the end
    assert split.answers is not None
    low, high = split.answers.char_spans[first, 0], split.answers.char_spans[last, 1]
    assert start <= first <= last < stop
    assert "a c b a a"[low:high].strip() == "b"
    if kind == "llama 3":  # its own rule for characters is kept
        assert "a c b a a"[low:high] == "b"


def test_what_was_installed_is_part_of_the_key_of_the_cache(tmp_path: Path) -> None:
    """The key of a tokenizer that marks texts by itself is that of its own files."""
    for kind, same in (("roberta", True), ("t5", True), ("gpt2", False), ("llama", False)):
        cache = tmp_path / kind
        text_encoder(cache, kind).encode(Rows((("a",),), np.zeros(1, np.int64)), "rows")
        theirs = transformers.AutoTokenizer.from_pretrained(cache / "files").backend_tokenizer
        theirs.no_padding()
        theirs.no_truncation()
        key = hashlib.sha256(f"{FORMAT} {LENGTH} {theirs.to_str()}".encode()).hexdigest()
        folder = hashlib.sha256(f"rows {key}".encode()).hexdigest()
        assert [path.name == folder for path in (cache / "encoded").iterdir()] == [same]
