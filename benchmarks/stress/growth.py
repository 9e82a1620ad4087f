"""What a stream costs as it grows: time per task, with and without reuse, and storage.

Run: python -m benchmarks.stress.growth --tasks 5,10,20,40 --out docs/growth.png. Generated tasks
under made-up names; a line per stream, then a figure. Times are of one run each, on one machine.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean

import yaml
from matplotlib.figure import Figure

from benchmarks import ROOT
from benchmarks.in_process import streamed
from stream.record.run_record import RunRecord
from stream.report.canvas import BLUE, ORANGE, save

SMALL = ("data.train=64", "data.validation=32", "data.test=128", "training.min_steps=4")


def made_tasks(count: int, folder: Path) -> list[str]:
    """Write copies of one task's YAML under other names; return the names."""
    text = (ROOT / "conf/task/crowdflower_airline.yaml").read_text(encoding="utf-8")
    (spec,) = yaml.safe_load(text).values()
    (folder / "task").mkdir(parents=True, exist_ok=True)
    names = [f"made_{number:03}" for number in range(count)]
    for name in names:
        path = folder / "task" / f"{name}.yaml"
        path.write_text(yaml.safe_dump({name: spec}), encoding="utf-8")
    return names


def measured(count: int, reuse: str, settings: Sequence[str]) -> tuple[RunRecord, list[float]]:
    """Run one stream.

    Args:
        count: how many tasks it has.
        reuse: ``evaluation.reuse``.
        settings: as for run_stream.py.

    Returns:
        Its record, and the seconds of each row but the first.
    """
    done: list[float] = []
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        names = made_tasks(count, Path(folder))
        search = f"hydra.searchpath=['file://{folder}']"
        chosen = [search, f"task=[{','.join(names)}]", f"evaluation.reuse={reuse}"]
        record = streamed([*SMALL, *settings, *chosen], lambda: done.append(time.perf_counter()))
    return record, [later - earlier for earlier, later in pairwise(done)]


def line(count: int, reuse: str, record: RunRecord, seconds: Sequence[float]) -> str:
    """Return a stream's line of the table.

    Args:
        count: how many tasks it has.
        reuse: ``evaluation.reuse``.
        record: what it has shown.
        seconds: of each row but the first.
    """
    cells = [cell for row in record.cells for cell in row if cell]
    reused = sum(cell.state == "reused" for cell in cells)
    fifth = max(count // 5, 1)
    first, last = mean(seconds[:fifth]), mean(seconds[-fifth:])
    timing, stored = record.timing, record.ledger.total_multiple
    return (
        f"{count:>5} {reuse:<6}{timing.train_s:8.1f}{timing.evaluate_s:8.1f}"
        f"{reused:>8}{first:10.2f} s{last:9.2f} s{stored:7.2f}x"
    )


def drawn(found: Mapping[tuple[int, str], RunRecord]) -> Figure:
    """Return the figure: seconds of learning and scoring against the number of tasks."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for reuse, colour in (("off", ORANGE), ("on", BLUE)):
        counts = sorted(count for count, how in found if how == reuse)
        timing = [found[count, reuse].timing for count in counts]
        scoring, learning = [t.evaluate_s for t in timing], [t.train_s for t in timing]
        for what, seconds, style in (("scoring", scoring, "-"), ("learning", learning, "--")):
            axes.plot(counts, seconds, style, marker="o", color=colour, label=f"{what}, {reuse}")
    axes.set_xlabel("tasks in the stream (generated)")
    axes.set_ylabel("seconds in all")
    axes.legend(title="evaluation.reuse", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", default="5,10,20,40", help="lengths of streams, two at least")
    parser.add_argument("--out", type=Path, help="a PNG to write")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py")
    given = parser.parse_args(arguments)
    print(
        f"{'tasks':>5} {'reuse':<6}{'learn s':>8}{'score s':>8}{'reused':>8}{'first rows':>12}"
        f"{'last rows':>11}{'stored':>8}"
    )
    found = {}
    for count in map(int, given.tasks.split(",")):
        for reuse in ("off", "on"):
            record, seconds = measured(count, reuse, given.settings)
            found[count, reuse] = record
            print(line(count, reuse, record, seconds), flush=True)
    if given.out is not None:
        save(drawn(found), given.out.parent, given.out.stem, ("png",))


if __name__ == "__main__":
    main()
