"""Tables of the paper's ablations in Markdown."""

from benchmarks.evidence.ablations import ABLATIONS
from benchmarks.evidence.records import Records
from benchmarks.markdown import table


def ablations(records: Records) -> str:
    """Return the methods of the plan: what is set, and what each task chooses within the run."""
    del records  # the plan alone
    lines = []
    for method in ABLATIONS:
        fixed = [text for text in method.settings if text != method.choice]
        head = f"head_lr of `{method.head_of}`" if method.head_of else ""
        chosen = f"`{method.choice}`" if method.choice else ""
        more = "; ".join(filter(None, (head, chosen)))
        lines.append((f"`{method.name}`", f"`{' '.join(fixed)}`", more))
    return table("method,settings,further", lines)
