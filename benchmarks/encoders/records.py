"""What was measured of encoders, as lines of JSON: results/encoders/runs.jsonl."""

from pathlib import Path

import msgspec

from benchmarks.paper.trials import read_lines

FILE = "runs.jsonl"


class Measured(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One encoder, learned in one way.

    Attributes:
        name: a key of `benchmarks.encoders.plan.SIZES`, or of the tests' tiny shapes.
        way: one of `benchmarks.encoders.speed.WAYS`, or ``agreement``.
        steps_per_s: steps a second, without the first ones.
        peak_mib: memory at the peak of learning.
        parameters: of the encoder.
        difference: the largest difference between losses of captured and eager steps.
        refusal: why steps were executed eagerly that were to be captured.
        failed: what went wrong; there are no numbers then.
        machine: what it ran on.
    """

    name: str
    way: str
    steps_per_s: float | None = None
    peak_mib: float | None = None
    parameters: int | None = None
    difference: float | None = None
    refusal: str = ""
    failed: str = ""
    machine: str


def measured(folder: Path) -> dict[tuple[str, str], Measured]:
    """Return what stands in a folder, the last line of each pair (name, way)."""
    return {(line.name, line.way): line for line in read_lines(folder / FILE, Measured)}
