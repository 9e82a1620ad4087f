"""Measurements, which are not tests. Each module says how to start it.

`speed` compares ways to do the same work in one process, so that ratios can be read; `stress` kills
runs, feeds hostile input and watches memory and time over long streams; `paper` makes the evidence:
its plan, runs, tables and figures. `in_process` is how they use the product in their own process.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""
