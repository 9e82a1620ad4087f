"""The tables of docs/streams.md, from the runs of `benchmarks.streams.runs`.

Run: python -m benchmarks.streams.table results/streams docs/streams.md
Text between ``<!-- streams:NAME -->`` and ``<!-- end -->`` is replaced; NAME is one of `TABLES`.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from benchmarks import markdown
from benchmarks.lines import read_lines
from benchmarks.markdown import spread, table
from benchmarks.streams import published
from benchmarks.streams.plan import (
    ALONE,
    ANY_ORDER,
    ENCODERS,
    METHODS,
    ONE_HEAD,
    ORDERS,
    ROUTERS,
    Job,
)
from benchmarks.streams.runs import StreamRun, by_job
from stream.formatting import DASH, percent


@dataclass(frozen=True)
class Runs:
    """All runs and trials of a folder."""

    tested: Mapping[Job, Sequence[StreamRun]]
    tried: Sequence[StreamRun]

    @classmethod
    def of(cls, folder: Path) -> "Runs":
        """Read a folder."""
        tested = read_lines(folder / "runs.jsonl", StreamRun)
        return cls(by_job(tested), read_lines(folder / "tune.jsonl", StreamRun))

    def scores(self, encoder: str, stream: str, order: str, method: str) -> list[float]:
        """Return the average score of each seed, with a head a task; none where it was not run.

        What depends on no other task is taken from the run over all fifteen tasks.
        """
        if method in ALONE:
            runs = self.tested.get(Job(encoder, "known", "long15", "published_4", method), ())
            tasks = self.tasks(encoder, stream)
            return [_mean_of(run, tasks) for run in runs]
        job = Job(encoder, "known", stream, ORDERS[stream][0], method)
        job = job if method in ANY_ORDER else Job(encoder, "known", stream, order, method)
        return [run.score for run in self.tested.get(job, ())]

    def forgetting(self, encoder: str, stream: str, method: str) -> list[float]:
        """Return the forgetting of every run, all orders together."""
        if method in ALONE:
            return [0.0]
        jobs = (Job(encoder, "known", stream, order, method) for order in ORDERS[stream])
        return [_metric(run, "forgetting") for job in jobs for run in self.tested.get(job, ())]

    def tasks(self, encoder: str, stream: str) -> list[str]:
        """Return the tasks of a stream, as runs of it have seen them."""
        found = (
            runs[0].tasks
            for job, runs in self.tested.items()
            if (job.encoder, job.stream) == (encoder, stream)
        )
        return next(found, [])

    def majority(self, encoder: str, stream: str) -> float | None:
        """Return the average score of the majority answer."""
        for job, runs in self.tested.items():
            if (job.encoder, job.stream) == (encoder, stream):
                return fmean(score for score in runs[0].majority if score is not None)
        return None

    def value(self, encoder: str, method: str) -> float | None:
        """Return the searched value with which a method was run."""
        for job, runs in self.tested.items():
            if (job.encoder, job.method) == (encoder, method):
                return runs[0].value
        return None


def _mean_of(run: StreamRun, tasks: Sequence[str]) -> float:
    """Return the mean final score of some tasks of a run."""
    final = dict(zip(run.tasks, run.final, strict=True))
    return fmean(score for task in tasks if (score := final[task]) is not None)


def _metric(run: StreamRun, name: str) -> float:
    """Return a metric of a run, which has it."""
    value = run.metrics[name]
    assert value is not None, f"{run.job.name} has no {name}"
    return value


def known(encoder: str, stream: str, runs: Runs) -> str:
    """Return every method on every order of a stream, a head a task, best first."""
    orders = ORDERS[stream]
    lines: list[tuple[float, list[str]]] = []
    for method in METHODS:
        found = [runs.scores(encoder, stream, order, method) for order in orders]
        flat = [score for scores in found for score in scores]
        if not flat:
            continue
        alike = method in (*ALONE, *ANY_ORDER)
        by_order = ["the same"] * len(orders) if alike else [_mean(scores) for scores in found]
        seeds = zip(*found, strict=True)
        overall = spread(found[0] if alike else [fmean(of_seed) for of_seed in seeds])
        lost = DASH if method in ANY_ORDER else _mean(runs.forgetting(encoder, stream, method))
        value = runs.value(encoder, method)
        chosen = DASH if value is None else f"{value:g}"
        lines.append((fmean(flat), [f"`{method}`", *by_order, overall, lost, chosen]))
    floor = runs.majority(encoder, stream)
    if floor is not None:
        blank = [DASH] * len(orders)
        lines.append((floor, ["majority answer", *blank, percent(floor), DASH, DASH]))
    ordered = [cells for _, cells in sorted(lines, key=lambda line: -line[0])]
    names = ",".join(order.replace("_", " ") for order in orders)
    return table(f"method,{names},mean of the orders,forgetting,learning rate", ordered)


def _mean(scores: Sequence[float]) -> str:
    """Return the mean of fractions in points."""
    return percent(fmean(scores)) if scores else "not run"


def one_head(runs: Runs) -> str:
    """Return the runs with one head for the classes of all tasks."""

    def lines() -> Iterator[list[str]]:
        for encoder in ENCODERS:
            for stream in ("cl5", "clinc150", "clinc150_15x10"):
                for method in ONE_HEAD:
                    yield from _one_head_line(runs, encoder, stream, method)

    header = "encoder,stream,method,classes seen: accuracy at the end,its mean over the stream"
    return table(f"{header},forgetting,runs", lines())


def _one_head_line(runs: Runs, encoder: str, stream: str, method: str) -> Iterator[list[str]]:
    """Yield the line of a method: means over seeds of means over orders."""
    jobs = [Job(encoder, "shared_head", stream, order, method) for order in ORDERS[stream]]
    found = [run for job in jobs for run in runs.tested.get(job, ())]
    if not found:
        return
    cells = []
    for metric in ("seen_class_accuracy", "average_seen_class_accuracy"):
        seeds = sorted({run.seed for run in found})
        means = [fmean(_metric(run, metric) for run in found if run.seed == s) for s in seeds]
        cells.append(spread(means))
    alike = method in ANY_ORDER
    lost = DASH if alike else _mean([_metric(run, "forgetting") for run in found])
    cells[1] = DASH if alike else cells[1]
    yield [encoder, f"`{stream}`", f"`{method}`", *cells, lost, str(len(found))]


def routed(runs: Runs) -> str:
    """Return adapters whose task is inferred, beside the same adapters with the task known."""

    def lines() -> Iterator[list[str]]:
        for encoder in ENCODERS:
            for stream in ("cl5", "cl4", "long15", "clinc150", "houlsby26"):
                for router in ROUTERS:
                    job = Job(encoder, f"inferred:{router}", stream, ORDERS[stream][0], "adapter")
                    if found := runs.tested.get(job):
                        yield _routed_line(job, router, found)

    header = "encoder,stream,router,routing accuracy,score with the inferred task"
    return table(f"{header},score with the known task,ms of deciding a text", lines())


def _routed_line(job: Job, router: str, found: Sequence[StreamRun]) -> list[str]:
    """Return the line of one router on one stream."""
    names = ("routing_accuracy", "routed_average_score", "average_score")
    cells = [spread([_metric(run, name) for run in found]) for name in names]
    rows = [cell for run in found for cell in run.routed or () if cell is not None]
    seconds = sum(cell["seconds"] for cell in rows)
    texts = sum(sum(cell["counts"]) for cell in rows)
    cost = f"{1000 * seconds / texts:.2f}" if texts else DASH  # features were computed before
    return [job.encoder, f"`{job.stream}`", f"`{router}`", *cells, cost]


def searches(runs: Runs) -> str:
    """Return what every search tried: average validation scores by value."""

    def lines() -> Iterator[list[str]]:
        for encoder in ENCODERS:
            for method, of in METHODS.items():
                tried = {
                    run.value: run.score
                    for run in runs.tried
                    if (run.encoder, run.method) == (encoder, method) and run.value is not None
                }
                if not tried:
                    continue
                best = max(tried, key=lambda value: tried[value])
                shown = (
                    f"**{value:g}: {percent(tried[value])}**"
                    if value == best
                    else f"{value:g}: {percent(tried[value])}"
                    for value in sorted(tried)
                )
                yield [encoder, f"`{of.settings}`", f"`{of.key}`", "; ".join(shown)]

    return table("encoder,learner,setting,value: average validation score", lines())


def t5_large(runs: Runs) -> str:
    """Return the published runs of T5-large."""
    del runs
    header = "published (T5-large),cl4 1,cl4 2,cl4 3,mean,long15 4,long15 5,long15 6,mean"
    lines = (
        [name, *map(str, found[:3]), _points(found[:3]), *map(str, found[3:]), _points(found[3:])]
        for name, found in published.T5_LARGE.items()
    )
    return table(header, lines)


def _points(values: Sequence[float]) -> str:
    """Return the mean of points."""
    return f"{fmean(values):.1f}"


def bert_long15(runs: Runs) -> str:
    """Return the published runs of BERT-base on ``long15``."""
    del runs
    header = "published (BERT-base),20 rows a class,200,1000"
    found = published.BERT_BASE_LONG15.items()
    return table(header, ([name, *map(str, scores)] for name, scores in found))


def single(title: str, found: Mapping[str, float], runs: Runs) -> str:
    """Return published numbers of one column."""
    del runs
    return table(title, ([name, str(score)] for name, score in found.items()))


TABLES: dict[str, Callable[[Runs], str]] = {
    **{
        f"{stream}_{encoder}": partial(known, encoder, stream)
        for stream in ("cl5", "cl4", "long15")
        for encoder in ENCODERS
    },
    "one_head": one_head,
    "routed": routed,
    "searches": searches,
    "t5_large": t5_large,
    "bert_long15": bert_long15,
    "bert_cl5": partial(single, "published (BERT-base),cl5", published.BERT_BASE_CL5),
    "clinc150": partial(single, "published (Pythia-410m),accuracy at the end", published.CLINC150),
}
"""The tables by name."""


def fill(path: Path, runs: Runs) -> None:
    """Write the tables into a Markdown file."""
    markdown.fill(path, "streams", lambda name: TABLES[name](runs))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/streams.md.")
    parser.add_argument("results", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.md")
    given = parser.parse_args(arguments)
    runs = Runs.of(given.results)
    for path in given.files:
        fill(path, runs)


if __name__ == "__main__":
    main()
