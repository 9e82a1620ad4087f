"""Tables and figures of `benchmarks.paper.evidence`, made from its records alone.

Run: python -m benchmarks.paper.table RESULTS --out DIR FILE.md [FILE.md]. Writes figures and the
report to DIR, the list of runs to RESULTS/README.md, and into every FILE.md the tables between
``<!-- evidence:NAME -->`` and ``<!-- end -->``; NAME is one of `TABLES`.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from analysis.figures.write import TOGETHER
from analysis.report.write import write_report
from analysis.runs.collect import collect
from benchmarks import markdown
from benchmarks.markdown import spread, table
from benchmarks.paper.plan import SIZES, TRIED_ON_CPU, TRIED_ON_MPNET, jobs
from benchmarks.paper.published import GLUE, GLUE_CLASSES, LARGE, PAPER
from benchmarks.paper.records import Records, identical_of, last_row
from stream.report.canvas import save

ORDER = (
    *("independent", "adapter256", "adapter64", "adapter8", "joint", "replay500", "replay50"),
    *("frozen", "finetune", "shared_adapter", "lwf", "lora"),
)
DRAWN = [learner for learner in ORDER if learner not in ("adapter8", "adapter256")]
FIGURES = ("average", "forgetting_map", "forgetting_curves", "forgetting", "parameters", "growth")
NAMES = {
    "adapter8": "`adapter`, size 8",
    "adapter64": "`adapter`, size 64",
    "adapter256": "`adapter`, size 256",
    "replay50": "`replay`, 50 rows a task",
    "replay500": "`replay`, 500 rows a task",
}


COLUMNS = "learner,score at the end,right after learning,forgetting,bit-identical,parameters,seeds"


def measured(records: Records, group: str, learner: str) -> Sequence[str]:
    """Return a learner's line of `COLUMNS`.

    Args:
        records: all of them.
        group: one of `benchmarks.paper.plan.GROUPS`.
        learner: its name in the plan.
    """
    runs, name = records.seeds(group, learner), NAMES.get(learner, f"`{learner}`")
    if not runs:
        return name, *["not run"] * 6
    metrics = [
        spread([run.metrics[key] for run in runs])
        for key in ("average_score", "learning_score", "forgetting")
    ]
    memory = identical_of([run.memory.tasks_identical for run in runs])
    return name, *metrics, memory, f"{runs[0].ledger.total_multiple:.2f} x", str(len(runs))


def best_first(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of `COLUMNS` as a table, the highest score at the end first."""

    def place(line: Sequence[str]) -> float:
        return math.inf if line[1] == "not run" else -float(line[1].split()[0])

    return table(COLUMNS, sorted(lines, key=place))


def headline(records: Records) -> str:
    """Return every learner over the stream."""
    lines = [measured(records, "given", learner) for learner in ORDER]
    chosen = best_sizes(records)
    return best_first([*lines, *([chosen] if chosen else [])])


def brief(records: Records) -> str:
    """Return the four learners that the README shows: the bounds, the adapters, and replay."""
    shown = ("independent", "adapter64", "replay500", "finetune")
    return best_first([measured(records, "given", learner) for learner in shown])


def large(records: Records) -> str:
    """Return the comparison with an encoder of the paper's size."""
    return best_first([measured(records, "mpnet", learner) for learner in TRIED_ON_MPNET])


def large_short(records: Records) -> str:
    """Return the one of few steps with that encoder."""
    return best_first([measured(records, "mpnet_short", learner) for learner in TRIED_ON_CPU])


def best_sizes(records: Records) -> Sequence[str] | None:
    """Return the line of adapters whose size each task's validation rows chose.

    Tasks are isolated, so a task's score is that of the run of its size.
    """
    ends, firsts, lost, identical, totals = [], [], [], [], []
    for seed in (1, 2, 3):
        validation = {size: records.validation(size, seed) for size in SIZES}
        if not all(validation.values()):
            continue
        runs = {size: records.runs[f"given/{size}-s{seed}"] for size in SIZES}
        order = runs["adapter64"].order
        chosen = [runs[max(SIZES, key=lambda s, t=t: validation[s][t])] for t in order]
        scores = [[row[i] for row in run.matrix[i:]] for i, run in enumerate(chosen)]
        ends.append(mean(column[-1] for column in scores))
        firsts.append(mean(column[0] for column in scores))
        lost.append(mean(max(column[:-1]) - column[-1] for column in scores[:-1]))
        cells = [[row[i].digest for row in run.cells[i:]] for i, run in enumerate(chosen)]
        identical.append(sum(column[0] == column[-1] for column in cells[:-1]))
        rows = [run.ledger.tasks[i] for i, run in enumerate(chosen)]
        base = runs["adapter64"].ledger.base_parameters
        totals.append(1 + sum(row.trained_parameters for row in rows) / base)
    if not ends:
        return None
    shown = spread(ends), spread(firsts), spread(lost), identical_of(identical)
    return "`adapter`, size by validation", *shown, f"{mean(totals):.2f} x", str(len(ends))


def by_task(records: Records, tasks: Sequence[str], source: dict[str, tuple[float, float]]) -> str:
    """Return a line per task, beside the paper's full fine-tuning and adapters.

    Args:
        records: all of them.
        tasks: names, in the order of the lines.
        source: the two numbers of the paper for each task.
    """
    found = [
        [last_row(run) for run in records.seeds(group, learner)]
        for group in ("given", "mpnet")
        for learner in ("independent", "adapter64")
    ]
    first = next(iter(records.runs.values()))
    titles = dict(zip(first.order, first.titles, strict=True))

    def lines() -> Iterator[Sequence[str]]:
        for task in tasks:
            here = [spread([row[task] for row in rows]) for rows in found]
            yield titles[task], *here, *map(str, source[task])
        averages = [[mean(row[t] for t in tasks) for row in rows] for rows in found]
        paper = (f"{mean(source[task][i] for task in tasks):.1f}" for i in range(2))
        yield "**mean**", *map(spread, averages), *paper

    encoders = ("MiniLM", "MPNet")
    names = (
        f"{encoder}: {way}" for encoder in encoders for way in ("`independent`", "`adapter` 64")
    )
    return table(f"task,{','.join(names)},paper: full,paper: adapters", lines())


def glue(records: Records) -> str:
    """Return the nine GLUE columns beside the paper's table 1 (size 64 everywhere)."""
    return by_task(records, GLUE, LARGE)


def extra(records: Records) -> str:
    """Return the 17 additional tasks beside the paper's table 2."""
    return by_task(records, list(PAPER), PAPER)


def sizes(records: Records) -> str:
    """Return validation scores of the eight GLUE classification tasks, as in section 3.4."""

    def lines() -> Iterator[Sequence[str]]:
        for size, paper in zip(SIZES, ("86.2", "85.8", "85.7"), strict=True):
            scores = [records.validation(size, seed) for seed in (1, 2, 3)]
            scores = [found for found in scores if found]
            glue_ = spread([mean(found[task] for task in GLUE_CLASSES) for found in scores])
            every = spread([mean(found.values()) for found in scores])
            yield size.removeprefix("adapter"), glue_, every, paper, str(len(scores))

    return table("size,eight GLUE tasks,all 26,paper: eight GLUE tasks,seeds", lines())


def orders(records: Records) -> str:
    """Return what another order of the tasks changes."""

    def lines() -> Iterator[Sequence[str]]:
        for learner in ORDER:
            runs = records.seeds("random", learner)
            if not runs:
                continue
            both = (records.seeds("given", learner), runs)
            ends = [spread([run.metrics["average_score"] for run in group]) for group in both]
            lost = [spread([run.metrics["forgetting"] for run in group]) for group in both]
            seeds = " and ".join(str(len(group)) for group in both)
            yield NAMES.get(learner, f"`{learner}`"), ends[0], lost[0], ends[1], lost[1], seeds

    names = "paper's order: at the end,forgetting,random order: at the end,forgetting"
    return table(f"learner,{names},seeds", lines())


def missing(records: Records) -> str:
    """Return what was planned and not run."""
    left: dict[str, list[str]] = {}
    for job in jobs():
        if f"{job.group}/{job.name}" not in records.runs:
            left.setdefault(f"{job.group}/{job.learner}", []).append(str(job.seed))
    runs = [f"`{name}` (seed {', '.join(seeds)})" for name, seeds in left.items()]
    return f"Planned and not run: {', '.join(runs)}." if left else "Every planned run is there."


TABLES: dict[str, Callable[[Records], str]] = {
    f.__name__: f
    for f in (headline, brief, large, large_short, glue, extra, sizes, orders, missing)
}


def list_of_runs(records: Records) -> str:
    """Return every run with its command, score and wall time, in Markdown."""

    def lines() -> Iterator[Sequence[str]]:
        for name, run in records.runs.items():
            facts = records.facts(name)
            score = f"{100 * run.metrics['average_score']:.1f}"
            memory = f"{run.memory.tasks_identical} of {run.memory.tasks_checked}"
            wall = " + ".join(f"{seconds:.0f}" for seconds in facts.wall_s)
            yield name, score, memory, wall, facts.machine, f"`{facts.command}`"

    return table("run,score,identical,wall s,machine,command", lines())


def fill(path: Path, records: Records) -> None:
    """Write the tables into a Markdown file."""
    markdown.fill(path, "evidence", lambda name: TABLES[name](records))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of figures and report")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE.md")
    given = parser.parse_intermixed_args(arguments)
    records = Records.of(given.results)
    names = [f"given/{learner}-s{seed}" for learner in ORDER for seed in (1, 2, 3)]
    shown, _ = collect([given.results / name for name in names if name in records.runs])
    drawn = [run for run in shown if run.path.name.partition("-")[0] in DRAWN]
    for name in FIGURES:
        save(TOGETHER[name](drawn), given.out, name, ("png",))
    write_report(shown, [], given.out / "report.html")
    top = (given.results / "README.md").read_text(encoding="utf-8").partition("<!-- runs -->")[0]
    text = f"{top}<!-- runs -->\n{list_of_runs(records)}\n"
    (given.results / "README.md").write_text(text, encoding="utf-8")
    for path in given.files:
        fill(path, records)


if __name__ == "__main__":
    main()
