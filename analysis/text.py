"""Text of runs as a page may show it: titles, names and paths can hold anything.

Python builds the page's text and the charts' labels, so both are made harmless here, once.
"""

import html
import json
import unicodedata
from collections.abc import Sequence

# Control, format (bidirectional overrides too), lone surrogates, private and unassigned
# characters, line and paragraph separators: none of them shows what it does.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: object, limit: int = 200) -> str:
    r"""Return text with every unseen character as its escape, cut to ``limit`` characters.

    >>> visible("a\u202eb")
    'a\\u202eb'
    """
    shown = "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in HIDDEN else letter
        for letter in str(text)[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def chart_text(text: object, limit: int = 200) -> str:
    """Return text for plotly, which reads a subset of HTML in labels and %{...} in templates.

    >>> chart_text("<b>A&B</b> %{x}")
    '&lt;b&gt;A&amp;B&lt;/b&gt; %&#123;x}'
    """
    return html.escape(visible(text, limit), quote=False).replace("{", "&#123;")


def script_json(value: object) -> str:
    """Return JSON that may stand inside a script element: it holds no tag and no NaN."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
