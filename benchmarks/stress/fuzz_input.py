"""Hostile input for `benchmarks.stress.fuzz`: valid JSON values and bytes, changed at random."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_NASTY = (
    "",
    "\0",
    "../../x",
    "/etc/passwd",
    "\u202e",
    "=1+1",
    "<b>",
    "${oc.env:HOME}",
    "nan",
    "é" * 999,
)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(_NASTY),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(-3, 3), max_size=2),
)


def changed(draw: Callable[[Any], Any], value: Any) -> Any:
    """Return JSON values with one to three places changed, added or taken out."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        node = value
        for _ in range(draw(st.integers(0, 6))):
            below = list(node.values()) if isinstance(node, dict) else node
            inner = [child for child in below if isinstance(child, dict | list) and child]
            if not inner:
                break
            node = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if draw(st.booleans()):
            node[key] = draw(JUNK)
        elif draw(st.booleans()):
            del node[key]
        elif isinstance(node, dict):
            node[draw(st.text(max_size=5))] = draw(JUNK)
        else:
            node.append(draw(JUNK))
        if not node:
            break
    return value


def torn(draw: Callable[[Any], Any], data: bytes) -> bytes:
    """Return bytes that were cut, overwritten or given more of."""
    whole = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(whole) - 1, 0)))
        stop = start + draw(st.integers(0, 12))
        whole[start:stop] = draw(
            st.one_of(st.binary(max_size=12), st.sampled_from([b'"', b";", b"\n"]))
        )
    return bytes(whole)
