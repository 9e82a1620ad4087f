"""Rows of several text fields: their tokens against the tokenizer's own, and how they are cut."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from stream.config.source import FilesSource, HubSource
from stream.config.task import TaskSpec
from stream.data.layout import Layout, layout_of
from stream.data.task import Rows
from stream.data.text_encoder import TextEncoder
from stream.data.truncation import Truncated, longest_first
from stream.errors import UserError
from tests.data.test_text_encoder import MARKS, MINILM, WORDS, locate, made_tokenizer

T = TypeVar("T")
LAYOUTS = [
    Layout(((0, " ", 1), (2,))),  # what three fields have without segments
    Layout((("f ", 0, " ", 1), (2,))),
    Layout(((2, " c d ", 0, " ", 1, " e"),)),
    Layout(((1,), ("a ", 2, " b c ", 0))),
]


def spec(**changes: Any) -> TaskSpec:
    known: dict[str, Any] = {"title": "t", "kind": "multi", "labels": ["a", "b"]}
    known |= {"metric": "accuracy", "source": "made", **changes}
    return TaskSpec(**known)


def ids_of(split: Any) -> list[list[int]]:
    return [row.tolist() for row in np.split(split.token_ids, split.offsets[1:-1])]


def cut_slowly(fields: Sequence[Sequence[T]], room: int) -> list[list[T]]:
    """Take one word after the other from the longest field, until all fit.

    Of equally long ones, from the one that was shorter, else from the earlier one.
    """
    left = [list(words) for words in fields]
    while sum(map(len, left)) > room:
        longest = max(range(len(left)), key=lambda at: (len(left[at]), -len(fields[at]), -at))
        left[longest].pop()
    return left


FIELDS = st.lists(
    st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=14), min_size=3, max_size=3
)


@cache
def tokenizers_of(folder: Path, marks: str) -> tuple[Path, Any]:
    location = made_tokenizer(folder / marks, MARKS[marks])
    return location, AutoTokenizer.from_pretrained(location)


@pytest.mark.parametrize("marks", ["bert", "roberta"])
@settings(max_examples=30, deadline=None, phases=[Phase.generate])
@given(rows=st.lists(FIELDS, min_size=1, max_size=4), at=st.sampled_from(range(len(LAYOUTS))))
def test_the_longest_field_is_cut_first(
    tmp_path_factory: pytest.TempPathFactory, marks: str, rows: list[list[list[str]]], at: int
) -> None:
    """One word is one token here, so words may be cut before the tokenizer sees them."""
    layout, length = LAYOUTS[at], 16
    location, theirs = tokenizers_of(tmp_path_factory.getbasetemp(), marks)
    ours = encoder_of(location, length)
    texts = [tuple(" ".join(words) for words in row) for row in rows]
    found = ours.encode_now(texts, layout)
    fixed = len(theirs(*([text] for text in layout.segments(["", "", ""])))["input_ids"][0])
    short = [tuple(" ".join(words) for words in cut_slowly(row, length - fixed)) for row in rows]
    # In lists, since transformers drops an empty second text otherwise.
    columns = map(list, zip(*map(layout.segments, short), strict=True))
    wanted = theirs(*columns, return_token_type_ids=True)
    assert ids_of(found) == wanted["input_ids"]
    assert found.truncated == sum(a != b for a, b in zip(texts, short, strict=True))
    if marks == "bert":  # which alone tells segments apart by token type
        firsts = [row.count(0) for row in wanted["token_type_ids"]]
        assert found.first_lengths.tolist() == firsts


@given(lengths=st.lists(st.integers(0, 20), min_size=1, max_size=6), room=st.integers(0, 60))
def test_what_each_of_many_fields_keeps(lengths: list[int], room: int) -> None:
    slow = cut_slowly([["word"] * number for number in lengths], room)
    assert longest_first(lengths, room) == list(map(len, slow))


def byte_level() -> PreTrainedTokenizerFast:
    """Bytes as tokens, the blank before a word among them; no post-processor trims it away."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {"<s>": 0, "</s>": 1, **{char: n for n, char in enumerate(sorted(alphabet), 2)}}
    merges = [("Ġ", "b"), ("a", "n"), ("Ġb", "an"), ("k", ":")]
    vocabulary |= {a + b: len(vocabulary) + n for n, (a, b) in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=False, add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


TEXT = st.text(st.sampled_from("bank: é😀́ ☃\n."), max_size=12)


@pytest.mark.parametrize("kind", ["wordpiece", "byte-level"])
@settings(max_examples=30, deadline=None, phases=[Phase.generate])
@given(row=st.tuples(TEXT, TEXT, TEXT), length=st.sampled_from([9, 14, 22]))
def test_tokens_are_those_of_the_joined_text(
    tmp_path_factory: pytest.TempPathFactory, kind: str, row: tuple[str, str, str], length: int
) -> None:
    """Whole rows have the tokenizer's own tokens; of others, each field keeps its first ones."""
    location = locate(MINILM)
    if kind == "byte-level":
        location = tmp_path_factory.getbasetemp() / "bytes"
        if not location.exists():
            byte_level().save_pretrained(location)
    layout = Layout((("k: ", 0, " ", 1), (2,)))
    theirs = loaded(location)
    called = theirs(*([text] for text in layout.segments(row)), return_offsets_mapping=True)
    whole, segments = called["input_ids"][0], called.sequence_ids()
    found = ids_of(encoder_of(location, length).encode_now([row], layout))[0]
    if len(whole) <= length:
        assert found == whole
        return
    # Field by field: the characters at which each begins and ends in its segment.
    first = len("k: ")
    places = [(0, first, first + len(row[0]))]
    places += [(0, places[0][2] + 1, places[0][2] + 1 + len(row[1])), (1, 0, len(row[2]))]
    of_field: list[int | None] = []
    for segment, (start, stop) in zip(segments, called["offset_mapping"][0], strict=True):
        inside = [
            n for n, (s, b, e) in enumerate(places) if s == segment and b < stop and start < e
        ]
        of_field.append(min(inside, default=None))
    words = [[at for at, owner in enumerate(of_field) if owner == n] for n in range(3)]
    kept = {at for some in cut_slowly(words, length - of_field.count(None)) for at in some}
    wanted = [at for at, owner in enumerate(of_field) if owner is None or at in kept]
    assert found == [whole[at] for at in wanted]
    assert len(found) == length


@cache
def encoder_of(location: str | Path, length: int) -> TextEncoder:
    return TextEncoder(location, length, Path(location))  # whose cache is not used


@cache
def loaded(location: str | Path) -> Any:
    return AutoTokenizer.from_pretrained(location)


def test_a_word_is_not_lost_to_a_paragraph(tmp_path: Path) -> None:
    layout = layout_of(spec(fields=["w", "p", "s"], segments=["word: {w} {p}", "{s}"]))
    tokenizer = loaded(locate(MINILM))
    ours = TextEncoder(locate(MINILM), 24, tmp_path)
    split = ours.encode_now([("bank", "a long story " * 90, "the bank is near")], layout)
    text = tokenizer.decode(ids_of(split)[0])
    assert text.startswith("[CLS] word : bank a long story")
    assert text.endswith("[SEP] the bank is near [SEP]")
    assert split.lengths.tolist() == [24]
    with pytest.raises(UserError, match=r"words of a task's segments leave no room .* in 8 tok"):
        TextEncoder(locate(MINILM), 8, tmp_path).encode_now(
            [("bank", "a", "b " * 9)], Layout((("one two three four five ", 0, 1), (2,)))
        )


class Read(list):
    """A list that counts how often one of its items is read."""

    def __init__(self, items: list, counter: list[int]):
        super().__init__(items)
        self.counter = counter

    def __iter__(self) -> Any:
        for item in super().__iter__():
            self.counter[0] += 1
            yield item

    def __getitem__(self, at: Any) -> Any:
        self.counter[0] += 1
        return super().__getitem__(at)


class CountingEncoding:
    """What the tokenizer returns for two segments of n words each; counts what is read of it."""

    def __init__(self, number: int):
        self.reads = [0]
        words = [(3 * n, 3 * n + 2) for n in range(number)]
        ends: list[Any] = [None]
        self.sequence_ids = self._counted([*ends, *[0] * number, *ends, *[1] * number, *ends])
        self.offsets = self._counted([(0, 0), *words, (0, 0), *words, (0, 0)])
        self.ids = self._counted(list(range(2 * number + 3)))

    def _counted(self, items: list) -> Read:
        return Read(items, self.reads)

    def __len__(self) -> int:
        return len(self.ids)


def steps_of(work: Callable[[], Any]) -> int:
    """Return how many instructions of Python a call executes."""
    steps = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def test_cutting_is_linear_in_the_number_of_tokens() -> None:
    layout = Layout(((0, " ", 1), (2,)))

    def work(number: int) -> tuple[int, int]:
        text = " ".join(["ab"] * number)
        half = text[: 3 * (number // 2) - 1]
        row = (half, text[len(half) + 1 :], text)
        encoding = CountingEncoding(number)
        steps = steps_of(
            lambda: Truncated(encoding, 20, owners=lambda e: layout.owners(row, e)).ids
        )
        return steps, encoding.reads[0]

    (steps, reads), (more_steps, more_reads) = work(400), work(1600)
    assert more_steps < 4.1 * steps
    assert more_reads < 4.1 * reads


def test_each_row_is_tokenized_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = TextEncoder(made_tokenizer(tmp_path / "bert", MARKS["bert"]), 16, tmp_path)
    calls = []

    class Spy:
        def __init__(self, real: Any):
            self.real = real

        def encode_batch(self, texts: list) -> Any:
            calls.extend(texts)
            return self.real.encode_batch(texts)

    monkeypatch.setattr(ours, "_tokenizer", Spy(ours._tokenizer))
    ours.encode_now([("a", "b " * 40, "c"), ("d", "e", "f")], LAYOUTS[0])
    assert calls == [("a " + "b " * 40, "c"), ("d e", "f")]


def test_the_cache_keeps_its_keys_and_tells_layouts_apart(tmp_path: Path) -> None:
    ours = TextEncoder(made_tokenizer(tmp_path / "bert", MARKS["bert"]), 16, tmp_path)
    rows = Rows((("a", "b"), ("c", "d")), np.arange(2))
    ours.encode(rows, "hash")
    key = hashlib.sha256(f"hash {ours.key}".encode()).hexdigest()
    assert [folder.name for folder in (tmp_path / "encoded").iterdir()] == [key]
    for layout in (Layout(((0, " ", 1),)), Layout(((1, " ", 0),)), Layout(((0, " ", 1),))):
        ours.encode(rows, "hash", layout)
    assert len(list((tmp_path / "encoded").iterdir())) == 3
    assert ours.encoded == 6


def test_existing_tasks_have_no_layout(all_specs: dict[str, TaskSpec]) -> None:
    for name, known in all_specs.items():
        assert (layout_of(known) is not None) == (name in {"wic", "copa", "multirc"})
    row = ("It rained.", "Streets got wet.", "Streets dried.", "effect")
    layout = layout_of(all_specs["copa"])
    assert layout is not None
    assert layout.segments(row) == (
        "It rained. What was the effect?",
        "choice1: Streets got wet. choice2: Streets dried.",
    )


def test_names_of_fields_and_the_default() -> None:
    columns = FilesSource(text=["w", ["a", "b"], "c d"])
    assert spec(files=columns).field_names == ["w", "a b", "c d"]
    assert layout_of(spec(files=columns)) == Layout(((0, " ", 1), (2,)))
    named = spec(files=columns, fields=["x", "y", "z"], segments=["{z}{x}", "n: {y}"])
    assert layout_of(named) == Layout(((2, 0), ("n: ", 1)))
    one = spec(kind="pair", fields=["t", "c"], segments=["{t} {c}"])
    assert layout_of(one) == Layout(((0, " ", 1),))
    assert layout_of(spec(kind="pair")) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"files": FilesSource(text=["a", "b"])}, "has 3 text columns or more"),
        ({}, "has 3 text columns or more"),
        ({"fields": [*"abc"], "hub": HubSource(text=[*"abcd"])}, "the same in every source"),
        ({"kind": "single", "files": FilesSource(text=[*"ab"])}, "has 1 text column, the same"),
        ({"fields": [*"aab"]}, "different names"),
        ({"fields": [*"abc"], "segments": ["{a} {b}"]}, r"each field once .* Fields: a, b, c"),
        ({"fields": [*"abc"], "segments": ["{a} {b} {a}", "{c}"]}, "each field once"),
        ({"fields": [*"abc"], "segments": ["{a}", "{b}", "{c}"]}, "one or two segments"),
        ({"kind": "span", "labels": None, "metric": "answer_f1", "segments": ["x"]}, "a span task"),
    ],
)
def test_a_wrong_specification_is_one_line(wrong: dict, said: str) -> None:
    with pytest.raises(UserError, match=said) as found:
        spec(**wrong)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("text", [[["a", 1]], [[]], [["a", ["b"]]]])
def test_columns_that_are_no_names_are_refused(text: list) -> None:
    with pytest.raises(UserError, match="names of columns, or lists of such names"):
        FilesSource(text=text)
