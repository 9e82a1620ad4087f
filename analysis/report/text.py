"""Text for the page: labels that plotly shows as they are, and JSON inside a script element."""

import html
import json

from stream.formatting import visible


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
