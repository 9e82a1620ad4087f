"""When rows count as the same: case folded, white space squeezed, their texts in any order.

One rule for everything that compares texts: splits by hash, leaks between tasks, duplicates.
"""

import hashlib
from collections.abc import Sequence


def text_key(texts: Sequence[str]) -> int:
    """Return a 64-bit key of the texts of one row.

    Rows that differ only in case, white space or the order of their texts have the same key. The
    key is 64 bits of SHA-256: among a million different texts any two collide with probability
    3e-8.
    """
    folded = sorted(" ".join(text.casefold().split()) for text in texts)
    digest = hashlib.sha256("\x1f".join(folded).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little")
