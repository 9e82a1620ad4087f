"""Every method on the same tasks: a small search each on validation rows, then one table on test.

Run: python -m benchmarks.paper.methods tune --out DIR [settings], then ... table --out DIR [settings].
Every method gets four settings and one seed (`SEARCH`) in ``tune``; ``table`` takes each one's best
by average validation score, three seeds and the test split. A run is one line of DIR/tune.jsonl or
DIR/table.jsonl; what stands there is not run again. ``table`` prints Markdown.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.tables import read_lines, spread, table


def settings(name: str, *values: float) -> list[list[str]]:
    """Return settings of one hyperparameter."""
    return [[f"learner.{name}={value}"] for value in values]


def rates(*values: float) -> list[list[str]]:
    """Return settings of the learning rate."""
    return settings("lr", *values)


SMALL, WHOLE = rates(5e-4, 1e-3, 2e-3, 4e-3), rates(5e-5, 1e-4, 2e-4, 4e-4)
SHARED = rates(2e-5, 5e-5, 1e-4, 2e-4)
SEARCH = {
    "majority": [[]],
    "tfidf": [[]],
    "frozen": rates(1e-3, 3e-3, 1e-2, 3e-2),
    "adapter": SMALL,
    "pfeiffer": SMALL,
    "bapna": SMALL,
    "parallel": SMALL,
    "lora": SMALL,
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
DEFAULTS = (f"task=[{TASKS}]", "limits.train=640", "limits.eval=500")
SLOW = ("progressive", "adapterfusion", "lt_sft", "diff_pruning", "pals", "derpp_adapter")
Job = tuple[str, tuple[str, ...], int]


def _begin(threads: int, devices: Any) -> None:
    """Prepare a worker: threads, and its GPU where there are several."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if (device := devices.get()) is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(device)


def _run(job: Job, split: str, given: Sequence[str]) -> dict[str, Any]:
    """Run one stream in a worker."""
    from benchmarks.in_process import streamed  # torch reads what `_begin` set when it is imported

    method, chosen, seed = job
    fixed = ["evaluation.baseline=false", "checkpoint.enabled=false", f"evaluation.split={split}"]
    overrides = [*DEFAULTS, *given, *fixed, f"learner={method}", *chosen, f"seed={seed}"]
    results = streamed(overrides)
    kept = {k: results[k] for k in ("metrics", "memory", "ledger", "matrix", "order", "versions")}
    timing = {k: v for k, v in results["timing"].items() if k != "by_task"}
    facts = {"method": method, "chosen": list(chosen), "seed": seed, "split": split}
    return {**facts, "device": results["device"], "timing": timing, **kept}


def done(path: Path) -> dict[Job, dict[str, Any]]:
    """Return the runs of a file."""
    return {(run["method"], tuple(run["chosen"]), run["seed"]): run for run in read_lines(path)}


def execute(
    jobs: Sequence[Job], path: Path, split: str, given: argparse.Namespace
) -> dict[Job, dict[str, Any]]:
    """Run what is missing, several at once; return all runs."""
    missing = [job for job in jobs if job not in done(path)]
    missing.sort(key=lambda job: job[0] not in SLOW)
    context = multiprocessing.get_context("spawn")
    devices = context.Manager().Queue()
    for worker in range(given.workers):
        devices.put(worker % given.gpus if given.gpus else None)
    with (
        path.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(given.workers, context, _begin, (given.threads, devices)) as pool,
    ):
        started = {pool.submit(_run, job, split, given.settings): job for job in missing}
        for number, future in enumerate(as_completed(started), start=1):
            method, chosen, seed = started[future]
            if (error := future.exception()) is not None:
                print(f"{method} {' '.join(chosen)} seed {seed}: {error}", file=sys.stderr)
                continue
            run = future.result()
            file.write(f"{json.dumps(run)}\n")
            file.flush()
            score = 100 * run["metrics"]["average_score"]
            print(
                f"{number}/{len(missing)} {method} {' '.join(chosen)} seed {seed}: {score:.1f}",
                file=sys.stderr,
            )
    return done(path)


def best(runs: dict[Job, dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return each method's settings with the highest average validation score."""
    found: dict[str, tuple[float, tuple[str, ...]]] = {}
    for (method, chosen, _), run in runs.items():
        score = run["metrics"]["average_score"]
        if method not in found or score > found[method][0]:
            found[method] = score, chosen
    return {method: chosen for method, (_, chosen) in found.items()}


def rows(runs: dict[Job, dict[str, Any]], methods: Sequence[str]) -> Iterator[list[str]]:
    """Yield the table's lines."""
    for method in methods:
        mine = [run for (name, _, _), run in runs.items() if name == method]
        if not mine:
            continue
        cells = [method, ", ".join(c.removeprefix("learner.") for c in mine[0]["chosen"])]
        metrics = ("average_score", "learning_score", "forgetting")
        cells += [spread([run["metrics"][metric] for run in mine]) for metric in metrics]
        ledger = mine[0]["ledger"]
        trained = statistics.median(row["trained_parameters"] for row in ledger["tasks"])
        seconds = statistics.mean(run["timing"]["train_s"] for run in mine)
        cells += [f"{trained:,.0f}", f"{ledger['total_multiple']:.2f}x", f"{seconds:.0f} s"]
        yield cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, or make the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("tune", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", help="apart by commas; all otherwise")
    parser.add_argument("--workers", type=int, default=1, help="runs at once")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of each")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to share among workers")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py")
    given = parser.parse_intermixed_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    methods = given.methods.split(",") if given.methods else list(SEARCH)
    tuned = given.out / "tune.jsonl"
    if given.step == "tune":
        jobs = [(m, tuple(chosen), 0) for m in methods for chosen in SEARCH[m]]
        runs = execute(jobs, tuned, "validation", given)
        for method, chosen in best(runs).items():
            print(f"{method:<16}{' '.join(chosen)}")
        return
    chosen_of = best(done(tuned))
    jobs = [(m, chosen_of.get(m, ()), seed) for m in methods for seed in (1, 2, 3)]
    runs = execute(jobs, given.out / "table.jsonl", "test", given)
    header = (
        "method,settings,average score,learning score,forgetting,trained a task,stored,learning"
    )
    print(table(header, rows(runs, methods)))


if __name__ == "__main__":
    main()
