"""How fast a run learns alone, and beside programs that keep every core busy.

Run: python -m benchmarks.speed.neighbour [--rounds 3] [--spins 1000 10000 100000]. Every way to
wait (`stream.openmp`) makes the same training steps of the adapter learner with MiniLM on
generated data, in a process of its own, in turns: alone, then beside one busy loop a core.
Ratios are what to read. Then come threads: one alone, and a process of one thread for each core.
All ways with the same number of threads must end with the same loss and the same logits.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from stream.openmp import CHOSEN_BY_USER, SPINS

SETTINGS = ("task=[crowdflower_airline]", "device=cpu", "training.epochs=1")
WARM = 8
"""Steps that are not measured."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def learn(steps: int) -> None:
    """Learn in this process; print rows a second, the last loss and the digest of the logits."""
    from benchmarks.in_process import set_up
    from stream.training.loop import fit

    run = set_up([*SETTINGS, f"training.min_steps={steps}"])
    times: list[float] = []
    report = fit(
        run.learner, run.tasks[0], run.config.training, lambda step: times.append(time.time())
    )
    rows = (len(times) - WARM) * run.config.training.batch_size
    cell = run.measure(run.tasks[0])
    ended = [report.losses[-1], cell.digest]
    print(json.dumps({"rate": rows / (times[-1] - times[WARM - 1]), "ended": ended}))


def start(variables: Mapping[str, str], steps: int) -> subprocess.Popen[str]:
    """Start a process that learns, with these variables instead of the user's."""
    kept = {k: v for k, v in os.environ.items() if k not in (*CHOSEN_BY_USER, *ONE_THREAD)}
    command = [sys.executable, "-m", "benchmarks.speed.neighbour", "--learn", str(steps)]
    return subprocess.Popen(command, env=kept | variables, stdout=subprocess.PIPE, text=True)


def rates(processes: Sequence[subprocess.Popen[str]]) -> tuple[float, list[object]]:
    """Return the rows a second of processes together, and what the first one ended with.

    Raises:
        CalledProcessError: one of them failed.
    """
    found = []
    for process in processes:
        printed, _ = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        found.append(json.loads(printed))
    return sum(one["rate"] for one in found), found[0]["ended"]


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep cores busy inside the block."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of rows a second, and the ratios to the quiet speed of OpenMP's default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--spins", nargs="*", default=[], help="other values of GOMP_SPINCOUNT")
    parser.add_argument("--learn", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.learn:
        learn(given.learn)
        return
    cores = len(os.sched_getaffinity(0))
    ways = ways_to_wait(cores, given.spins)
    measured: dict[tuple[str, int], list[float]] = {}
    ended: dict[bool, set[str]] = {False: set(), True: set()}
    for _ in range(given.rounds):
        for loops in (0, cores):
            for name, (count, variables) in ways.items():
                with busy_loops(loops):
                    rate, last = rates([start(variables, given.steps) for _ in range(count)])
                print(f"{name}, {loops} busy loops: {rate:.1f} rows/s", file=sys.stderr, flush=True)
                measured.setdefault((name, loops), []).append(rate)
                ended[variables == ONE_THREAD].add(json.dumps(last))
    show(measured, cores)
    agree = all(len(losses) == 1 for losses in ended.values())
    print("losses and logits: " + ("equal in all ways" if agree else f"DIFFERENT: {ended}"))
    sys.exit(0 if agree else 1)


def ways_to_wait(cores: int, spins: Sequence[str]) -> dict[str, tuple[int, dict[str, str]]]:
    """Return how many processes of each way run at once, and their variables."""
    return {
        "OpenMP's default": (1, {"GOMP_SPINCOUNT": "300000"}),
        f"ours ({SPINS} spins)": (1, {}),
        "passive": (1, {"OMP_WAIT_POLICY": "PASSIVE"}),
        **{f"{count} spins": (1, {"GOMP_SPINCOUNT": count}) for count in spins},
        "one thread": (1, ONE_THREAD),
        f"{cores} processes of one thread": (cores, ONE_THREAD),
    }


def show(measured: Mapping[tuple[str, int], Sequence[float]], cores: int) -> None:
    """Print the medians, and how they compare with the first way, quiet."""
    medians = {way: statistics.median(found) for way, found in measured.items()}
    reference = next(iter(medians.values()))
    print(f"{cores} cores; rows a second; in brackets: of the first line's quiet speed")
    for name in dict.fromkeys(name for name, _ in measured):
        alone, among = medians[name, 0], medians[name, cores]
        print(
            f"{name:30} quiet {alone:6.1f} ({alone / reference:4.2f})   "
            f"beside {cores} busy loops {among:6.1f} ({among / reference:4.2f})"
        )


if __name__ == "__main__":
    main()
