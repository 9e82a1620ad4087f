"""Measurements, which are not tests. Each module says how to start it.

`speed` compares ways to do the same work in one process, so that ratios can be read; `stress` kills
runs, feeds hostile input and watches memory and time over long streams; `evidence` compares methods
as docs/protocol.md plans it. `in_process` is how they use the product in their own process,
`multirun` how they start multiruns; `markdown` and `lines` are what they write.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""
