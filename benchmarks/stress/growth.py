"""What a stream costs as it grows: time a task, with and without reuse, and storage.

Run: python -m benchmarks.stress.growth --tasks 5,10,20,40 --out docs/growth.png. Generated tasks under
made-up names; a line a stream, then a figure. Times are of one run each, on one machine.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from matplotlib.figure import Figure

from benchmarks.in_process import streamed
from stream.record.run_record import RunRecord
from stream.report.plots import BLUE, ORANGE, save
from stream.report.tracking import NoTracking

ROOT = Path(__file__).parent.parent.parent
SMALL = ("data.train=64", "data.validation=32", "data.test=128", "training.min_steps=4")


class Clock(NoTracking):
    """A tracker that notes when each row was done."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[float] = []

    def start(self, folder: Path, record: RunRecord) -> None:
        """Note the start."""
        del folder, record
        self.rows = [time.perf_counter()]

    def row(self, index: int, record: RunRecord) -> None:
        """Note the end of a row."""
        del index, record
        self.rows.append(time.perf_counter())


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


def measured(count: int, reuse: str, settings: Sequence[str]) -> dict[str, Any]:
    """Run one stream; return its results and the seconds of each row, under ``row_s``."""
    folder = Path(tempfile.mkdtemp(prefix="growth-"))
    names = made_tasks(count, folder / "conf")
    search = f"hydra.searchpath=['file://{folder / 'conf'}']"
    chosen = [*SMALL, *settings, search, f"task=[{','.join(names)}]", f"evaluation.reuse={reuse}"]
    clock = Clock()
    results = streamed(chosen, clock)
    pairs = zip(clock.rows, clock.rows[1:], strict=False)
    return {**results, "row_s": [later - earlier for earlier, later in pairs]}


def drawn(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> Figure:
    """Return the figure: seconds of learning and scoring against the number of tasks."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for reuse, colour in (("off", ORANGE), ("on", BLUE)):
        runs = sorted((count, run) for (count, how), run in found.items() if how == reuse)
        counts = [count for count, _ in runs]
        for key, style in (("evaluate_s", "-"), ("train_s", "--")):
            seconds = [run["timing"][key] for _, run in runs]
            what = "scoring" if key == "evaluate_s" else "learning"
            axes.plot(counts, seconds, style, marker="o", color=colour, label=f"{what}, {reuse}")
    axes.set_xlabel("tasks in the stream (generated)")
    axes.set_ylabel("seconds in all")
    axes.legend(title="evaluation.reuse", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", default="5,10,20,40")
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
            run = found[count, reuse] = measured(count, reuse, given.settings)
            cells = [cell for row in run["cells"] for cell in row if cell]
            reused = sum(cell["state"] == "reused" for cell in cells)
            some = max(len(run["row_s"]) // 5, 1)
            first, last = sum(run["row_s"][1 : some + 1]) / some, sum(run["row_s"][-some:]) / some
            timing, stored = run["timing"], run["ledger"]["total_multiple"]
            print(
                f"{count:>5} {reuse:<6}{timing['train_s']:8.1f}{timing['evaluate_s']:8.1f}"
                f"{reused:>8}{first:10.2f} s{last:9.2f} s{stored:7.2f}x",
                flush=True,
            )
    if given.out is not None:
        save(drawn(found), given.out.parent, given.out.stem, ("png",))


if __name__ == "__main__":
    main()
