"""What was measured of encoders, as lines of JSON: runs.jsonl, memory.jsonl in results/encoders."""

from pathlib import Path

import msgspec

from benchmarks.lines import read_lines

FILE = "runs.jsonl"
MEMORY = "memory.jsonl"
MIB = 2**20


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


class Case(msgspec.Struct, kw_only=True, frozen=True):
    """What is measured of memory.

    Attributes:
        encoder: a name in `benchmarks.encoders.memory.SHAPES`.
        storage: ``backbone.storage``.
        checkpointing: ``training.gradient_checkpointing``.
        length: tokens of every row.
        rows: of a batch.
    """

    encoder: str
    storage: str
    checkpointing: bool
    length: int
    rows: int


class Found(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What was measured; bytes are null where they cannot be told.

    Attributes:
        parameters: of the encoder as it came.
        weights: bytes of all weights, those of copies too.
        learning: bytes at the peak of learning, weights included.
        scoring: bytes at the peak of scoring.
        step_s: seconds of a step.
        failed: why there is nothing; empty if there is.
    """

    parameters: int = 0
    weights: int = 0
    learning: int | None = None
    scoring: int | None = None
    step_s: float | None = None
    failed: str = ""


class Measurement(msgspec.Struct, kw_only=True):
    """A line of memory.jsonl: a case, what was found, and on which machine."""

    case: Case
    found: Found
    machine: str


def cases_of(folder: Path) -> dict[Case, Measurement]:
    """Return the measurements of memory that stand in a folder."""
    return {line.case: line for line in read_lines(folder / MEMORY, Measurement)}
