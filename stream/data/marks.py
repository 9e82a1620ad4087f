"""The special tokens that mark where texts begin and end, as a tokenizer puts them.

Heads and pairs need them: a text ends in a token of its own, and that token divides the texts of a
pair. The tokenizer of a decoder puts none, or one before a text alone; it then gets a rule of its
own here.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stream.errors import require

NEEDED = (
    "which heads and pairs need: a text must end in a special token, and one must divide the texts "
    "of a pair"
)


@dataclass(frozen=True)
class Marks:
    """The special tokens of a text.

    Attributes:
        leading: how many stand before it.
        end: the id of the last one behind it.
    """

    leading: int
    end: int


def ensure_marks(tokenizer: Any, end: int | None, location: str | Path) -> Marks:
    """Return the marks of texts; give them to a tokenizer that does not mark their ends.

    Such a one marks from now on as embedding models that are made of decoders do: what it puts
    before a text, A, the end; of a pair, B and the end follow.

    Args:
        tokenizer: of the tokenizers library; its post-processor may be replaced.
        end: the token that ends a text in the tokenizer's own files, if they name one.
        location: where those files are, for messages.

    Raises:
        UserError: texts have no end that could be marked, or nothing divides those of a pair.
    """
    alone = tokenizer.encode("a")
    texts = alone.sequence_ids
    before = alone.ids[: texts.index(0)] if 0 in texts else alone.ids[:-1]
    if texts[-1:] == [None]:
        end = int(alone.ids[-1])
    else:
        require(
            end is not None,
            f"the tokenizer in {location} puts no special token behind texts, {NEEDED}; name one "
            "as its eos_token, or give it a post-processor",
        )
        assert end is not None
        tokenizer.post_processor = _processor(tokenizer, before, end)
    require(
        _divides(tokenizer.encode("a", "a").sequence_ids),
        f"the tokenizer in {location} puts no special token (such as [SEP]) between two texts, "
        f"{NEEDED}; give it a post-processor",
    )
    return Marks(len(before), end)


def _divides(texts: list[int | None]) -> bool:
    """Whether a special token is between the texts of a pair."""
    if 0 not in texts or 1 not in texts:
        return texts.count(None) > 1
    last_of_first = len(texts) - 1 - texts[::-1].index(0)
    return texts.index(1) > last_of_first + 1


def _processor(tokenizer: Any, before: list[int], end: int) -> Any:
    """Return what marks texts as `ensure_marks` says."""
    from tokenizers import processors

    # Pieces have names of their own: those of tokens may have signs that a template reads.
    numbers = {f"before{place}": number for place, number in enumerate(before)}
    single = [*numbers, "$A", "end"]
    numbers["end"] = end
    marks = processors.TemplateProcessing(
        single=single,
        pair=[*single, "$B:1", "end:1"],
        special_tokens=[
            {"id": name, "ids": [number], "tokens": [tokenizer.id_to_token(number)]}
            for name, number in numbers.items()
        ],
    )
    trimming = [part for part in _parts(tokenizer) if part.get("type") == "ByteLevel"]
    if not trimming:
        return marks
    # What makes the characters of a token those without its blank.
    keys = ("add_prefix_space", "trim_offsets", "use_regex")
    kept = {key: trimming[0][key] for key in keys if key in trimming[0]}
    return processors.Sequence([processors.ByteLevel(**kept), marks])


def _parts(tokenizer: Any) -> list[dict[str, Any]]:
    """Return what the post-processor does, in its parts as JSON has them."""
    whole = tokenizer.post_processor
    if whole is None:
        return []
    read: dict[str, Any] = json.loads(whole.__getstate__())
    return read.get("processors", [read])
