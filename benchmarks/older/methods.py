"""Every method on the same tasks: a small search each on validation rows, then one table on test.

Run: python -m benchmarks.older.methods tune --out DIR [settings], then ... table --out DIR.
Every method gets four settings and one seed (`SEARCH`) in ``tune``; ``table`` takes each one's best
by average validation score, three seeds and the test split. A run is one line of DIR/tune.jsonl or
DIR/table.jsonl; what stands there is not run again. ``table`` prints Markdown. Run folders are
those of multiruns (`benchmarks.multirun`).
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from benchmarks.lines import append_line, read_lines
from benchmarks.markdown import NOTE, spread, table
from benchmarks.multirun import Machine, Multirun, add_options, shown
from stream.record.run_record import LedgerRecord, MemoryRecord, RunRecord, TimingRecord

HEADER = "method,settings,average score,learning score,forgetting,trained per task,stored,learning"
Grid = tuple[str, tuple[float, ...]]
Key = tuple[str, tuple[str, ...], int]


def settings(name: str, *values: float) -> Grid:
    """Return a hyperparameter and the values to try."""
    return f"learner.{name}", values


def rates(*values: float) -> Grid:
    """Return the learning rate and the values to try."""
    return settings("lr", *values)


NOTHING: Grid = ("seed", (0,))
SMALL, WHOLE = rates(5e-4, 1e-3, 2e-3, 4e-3), rates(5e-5, 1e-4, 2e-4, 4e-4)
SHARED = rates(2e-5, 5e-5, 1e-4, 2e-4)
SEARCH: dict[str, Grid] = {
    "majority": NOTHING,
    "tfidf": NOTHING,
    "frozen": rates(1e-3, 3e-3, 1e-2, 3e-2),
    "adapter": SMALL,
    "pfeiffer": SMALL,
    "bapna": SMALL,
    "parallel": SMALL,
    "lora": SMALL,
    "prompt_tuning": rates(3e-3, 1e-2, 3e-2, 1e-1),
    "bitfit": rates(1e-3, 2e-3, 4e-3, 8e-3),
    "layernorm": rates(2e-3, 5e-3, 1e-2, 2e-2),
    "topk": WHOLE,
    "lt_sft": WHOLE,
    "diff_pruning": WHOLE,
    "independent": WHOLE,
    "stacked": SMALL,
    "adapterfusion": SMALL,
    "progressive": WHOLE,
    "finetune": SHARED,
    "shared_adapter": rates(3e-4, 1e-3, 2e-3, 4e-3),
    "ewc": settings("strength", 1e2, 1e3, 1e4, 1e5),
    "si": settings("strength", 1e0, 1e1, 1e2, 1e3),
    "lwf": settings("strength", 0.1, 0.3, 1.0, 3.0),
    "olora": SMALL,
    "agem": SHARED,
    "derpp": settings("alpha", 0.1, 0.3, 1.0, 3.0),
    "replay": SHARED,
    "ewc_adapter": settings("strength", 1e2, 1e3, 1e4, 1e5),
    "lwf_adapter": settings("strength", 0.1, 0.3, 1.0, 3.0),
    "derpp_adapter": settings("alpha", 0.1, 0.3, 1.0, 3.0),
    "pals": SHARED,
    "joint": SHARED,
}
TASKS = (
    "cola,sst2,mrpc,stsb,rte,newsgroups20,crowdflower_airline,crowdflower_emotion,sms_spam,"
    "news_aggregator"
)
DEFAULTS = (f"task=[{TASKS}]", "limits.train=640", "limits.eval=500", "tracking=none")
FIXED = ("evaluation.baseline=false", "checkpoint.enabled=false")
SLOW = ("progressive", "adapterfusion", "lt_sft", "diff_pruning", "pals", "derpp_adapter")


class MethodRun(msgspec.Struct, kw_only=True):
    """A run of this module: a line of its tune.jsonl or table.jsonl.

    Attributes:
        chosen: its hyperparameter, such as ``learner.lr=0.001``; empty for a method without one.
    """

    method: str
    chosen: tuple[str, ...]
    seed: int
    split: str
    device: str
    timing: TimingRecord
    metrics: dict[str, float | None]
    memory: MemoryRecord
    ledger: LedgerRecord
    matrix: list[list[float | None]]
    order: list[str]
    versions: dict[str, str]

    @classmethod
    def of(cls, method: str, chosen: tuple[str, ...], record: RunRecord) -> Self:
        """Return the line of a finished run.

        Args:
            method: one of `SEARCH`.
            chosen: its hyperparameter, as above.
            record: what the run has shown.
        """
        same = {
            name: getattr(record, name)
            for name in cls.__struct_fields__
            if name not in ("method", "chosen")
        }
        return cls(method=method, chosen=chosen, **same)


class Batch(NamedTuple):
    """Runs of one method that differ in a hyperparameter, or in the seed.

    Attributes:
        chosen: hyperparameters that they share.
        key: the setting that differs; with a hyperparameter the seed is 0.
        values: its value in each run.
    """

    method: str
    chosen: tuple[str, ...]
    key: str
    values: tuple[float, ...]

    def run(self, value: float) -> Key:
        """Return what names the run of one value: method, hyperparameters, seed."""
        if self.key == "seed":
            return self.method, self.chosen, int(value)
        return self.method, (*self.chosen, f"{self.key}={value}"), 0

    @property
    def settings(self) -> list[str]:
        """The settings that all runs share."""
        seed = [] if self.key == "seed" else ["seed=0"]
        return [f"learner={self.method}", *self.chosen, *seed]


def done(path: Path) -> dict[Key, MethodRun]:
    """Return the runs of a file."""
    return {(run.method, run.chosen, run.seed): run for run in read_lines(path, MethodRun)}


def execute(batches: Sequence[Batch], path: Path, split: str, given: argparse.Namespace) -> None:
    """Run what is missing.

    Args:
        batches: all that is wanted.
        path: the file of the runs, which grows.
        split: what they are scored on.
        given: the command line.
    """
    known, machine = done(path), Machine(given.workers, given.gpus)
    work = []
    for batch in sorted(batches, key=lambda batch: batch.method not in SLOW):
        left = tuple(value for value in batch.values if batch.run(value) not in known)
        if left:
            work.append(
                partial(one_batch, machine, batch._replace(values=left), path, split, given)
            )
    machine.run_all(work)


def one_batch(
    machine: Machine, batch: Batch, path: Path, split: str, given: argparse.Namespace
) -> str:
    """Run a batch and note its complete runs; return one line on what became of it.

    Args:
        machine: what runs it.
        batch: the runs.
        path: the file of the runs, which grows.
        split: what they are scored on.
        given: the command line.
    """
    common = [*DEFAULTS, *given.settings, *FIXED, f"evaluation.split={split}", *batch.settings]
    title = f"{given.out.name}-{given.step}-{batch.method}"
    runs = Multirun(title, common, batch.key, batch.values)
    found = machine.multirun(runs)
    for value, record in found.items():
        method, chosen, _ = batch.run(value)
        append_line(path, MethodRun.of(method, chosen, record))
    return shown(runs, found)


def best(runs: dict[Key, MethodRun]) -> dict[str, tuple[str, ...]]:
    """Return each method's settings with the highest average validation score."""
    found: dict[str, MethodRun] = {}
    for run in runs.values():
        so_far = found.setdefault(run.method, run)
        if run.metrics["average_score"] > so_far.metrics["average_score"]:
            found[run.method] = run
    return {method: run.chosen for method, run in found.items()}


def rows(runs: Sequence[MethodRun], methods: Sequence[str]) -> Iterator[list[str]]:
    """Yield the table's lines."""
    for method in methods:
        mine = [run for run in runs if run.method == method]
        if not mine:
            continue
        cells = [method, ", ".join(c.removeprefix("learner.") for c in mine[0].chosen)]
        metrics = ("average_score", "learning_score", "forgetting")
        cells += [spread([run.metrics[metric] for run in mine]) for metric in metrics]
        ledger = mine[0].ledger
        trained = statistics.median(row.trained_parameters for row in ledger.tasks)
        seconds = statistics.mean(run.timing.train_s for run in mine)
        cells += [f"{trained:,.0f}", f"{ledger.total_multiple:.2f}x", f"{seconds:.0f} s"]
        yield cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, or make the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("tune", "table"))
    add_options(parser)
    parser.add_argument("--methods", help="separated by commas; all otherwise")
    given = parser.parse_intermixed_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    given.out = given.out.resolve()
    methods = given.methods.split(",") if given.methods else list(SEARCH)
    tuned, tested = given.out / "tune.jsonl", given.out / "table.jsonl"
    if given.step == "tune":
        execute([Batch(m, (), *SEARCH[m]) for m in methods], tuned, "validation", given)
        for method, chosen in best(done(tuned)).items():
            print(f"{method:<16}{' '.join(chosen)}")
        return
    chosen_of = best(done(tuned))
    batches = [Batch(m, chosen_of.get(m, ()), "seed", (1, 2, 3)) for m in methods]
    execute(batches, tested, "test", given)
    print(table(HEADER, rows(list(done(tested).values()), methods)), NOTE, sep="\n\n")


if __name__ == "__main__":
    main()
