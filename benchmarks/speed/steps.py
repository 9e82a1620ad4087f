"""How fast tasks are learned and scored, against what people would use otherwise.

Run: python -m benchmarks.speed.steps [settings], such as data=files data.root=DIR
'task=[sst2,cola]' limits.train=2000. Every way learns and scores the same rows of the same tasks in
turns, in one process, set-up included (engines, captures, Trainer objects); tokenizing is not.
Ratios are what to read. Ways whose library is not installed are named and left out.
"""

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from benchmarks.in_process import set_up
from benchmarks.speed.rivals import RIVALS
from stream.config.paths import locate
from stream.config.run import RunConfig
from stream.data.task import Task
from stream.evaluation.evaluate import logits_of
from stream.run.setup import pick_device, pick_precision
from stream.training.engine import pick_engine
from stream.training.loop import fit

DEFAULTS = ("task=[sst2,cola,rte,crowdflower_airline]", "limits.train=1000")
OURS = {
    "eager, float32": ("eager", "float32"),
    "eager, bf16": ("eager", "bf16"),
    "captured, float32": ("captured", "float32"),
    "captured, bf16": ("captured", "bf16"),
}
REFERENCE = "eager, float32"
Measured = tuple[float, float, float]
"""Seconds of learning, seconds of scoring, bytes at the peak."""


def now(device: torch.device) -> float:
    """Return the time when all that was started is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Way:
    """One way to learn and score tasks, and the seconds it took in each round."""

    def __init__(self, name: str, run: Callable[[], Measured]):
        self.name = name
        self._run = run
        self.rounds: list[Measured] = []

    def go(self) -> None:
        """Make one round."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self.rounds.append(self._run())

    def median(self, place: int) -> float:
        """Return the median over rounds of one of the three numbers."""
        return statistics.median(numbers[place] for numbers in self.rounds)


def ours(settings: Sequence[str], engine: str, precision: str) -> Measured:
    """Learn and score every task with this program.

    Args:
        settings: as for run_stream.py.
        engine: how steps are executed.
        precision: what the encoder computes in.

    Returns:
        Seconds of learning, seconds of scoring, bytes at the peak.
    """
    run = set_up([*settings, f"backbone.precision={precision}"])
    config, learner, device = run.config, run.learner, run.device
    size = config.training.batch_size
    started = now(device)
    chosen = pick_engine(engine, learner, device, size, counting=False)
    for task in run.tasks:
        fit(learner, task, config.training, engine=chosen)
    learned = now(device)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    for task in run.tasks:
        logits_of(learner, [task], config.evaluation.split, config.evaluation.batch_tokens, device)
    return learned - started, now(device) - learned, float(peak)


def rows(task: Task, split: str) -> list[dict[str, Any]]:
    """Return a split as people hand it to a collator: lists of token ids, and labels."""
    found = task.split(split)
    ids = np.split(found.token_ids, found.offsets[1:-1])
    kind = float if task.is_regression else int
    return [
        {"input_ids": row.tolist(), "attention_mask": [1] * len(row), "labels": kind(label)}
        for row, label in zip(ids, found.labels, strict=True)
    ]


def theirs(config: RunConfig, tasks: Sequence[Task], rival: Callable[..., Any]) -> Measured:
    """Learn and score every task with a rival.

    Args:
        config: says the device, the encoder, the number of epochs and the split.
        tasks: the tasks.
        rival: a function of `benchmarks.speed.rivals`.

    Returns:
        Seconds of learning, seconds of scoring, bytes at the peak.
    """
    device, location = pick_device(config.device), locate(config.backbone)
    learning = scoring = peak = 0.0
    for task in tasks:
        train, test = rows(task, "train"), rows(task, config.evaluation.split)
        work = config.learner.workload(task, config.training)
        started = now(device)
        with tempfile.TemporaryDirectory() as folder:
            predict = rival(location, train, task.num_outputs, work.epochs, device, folder)
            learned = now(device)
            peak = max(peak, torch.cuda.max_memory_allocated() if device.type == "cuda" else 0)
            predict(test)
        learning += learned - started
        scoring += now(device) - learned
    return learning, scoring, peak


def ways_of(settings: Sequence[str], config: RunConfig, tasks: Sequence[Task]) -> list[Way]:
    """Return every way that this machine has.

    Args:
        settings: as for run_stream.py.
        config: what they say.
        tasks: the tasks that they name.
    """
    ways = [
        Way(name, partial(ours, settings, engine, precision))
        for name, (engine, precision) in OURS.items()
        if engine == "eager" or pick_device(config.device).type == "cuda"
    ]
    for name, (library, rival) in RIVALS.items():
        if find_spec(library) is None:
            print(f"left out, {library} is not installed: {name}")
        else:
            ways.append(Way(name, partial(theirs, config, tasks, rival)))
    return ways


def print_work(config: RunConfig, tasks: Sequence[Task]) -> int:
    """Print what is measured, and on what machine; return the number of steps."""
    device = pick_device(config.device)
    steps = sum(config.learner.workload(task, config.training).steps for task in tasks)
    scored = sum(len(task.split(config.evaluation.split)) for task in tasks)
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    print(
        f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"transformers {version('transformers')}, {pick_precision('auto', device)} by default"
    )
    print(
        f"{config.learner.name} on {config.backbone.name}, {config.data.source} data, "
        f"{len(tasks)} tasks, {steps} steps of {config.training.batch_size}, {scored} rows scored"
    )
    return steps


def print_table(ways: Sequence[Way], steps: int) -> None:
    """Print medians, and ratios to `REFERENCE`, or to the first way where that was not measured."""
    base = next((way for way in ways if way.name == REFERENCE), ways[0])
    print(
        f"{'way':<34}{'learn s':>9}{'steps/s':>9}{'ratio':>7}{'score s':>9}{'ratio':>7}{'MiB':>7}"
    )
    for way in ways:
        learn, score = way.median(0), way.median(1)
        print(
            f"{way.name:<34}{learn:9.2f}{steps / learn:9.0f}{base.median(0) / learn:7.2f}"
            f"{score:9.2f}{base.median(1) / score:7.2f}{way.median(2) / 2**20:7.0f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="parts of names of ways, separated by |")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py")
    given = parser.parse_args(arguments)
    settings = [*DEFAULTS, *given.settings]
    run = set_up(settings)
    config, tasks = run.config, run.tasks
    steps = print_work(config, tasks)
    wanted = [""] if given.only is None else given.only.split("|")
    ways = [
        way for way in ways_of(settings, config, tasks) if any(part in way.name for part in wanted)
    ]
    for number in range(given.rounds):
        for way in ways:
            way.go()
            print(f"round {number + 1}: {way.name}: {way.rounds[-1][0]:.1f} s", file=sys.stderr)
    print_table(ways, steps)


if __name__ == "__main__":
    main()
