"""The tables of docs/methods.md, from older records.

Run: python -m benchmarks.older.table results FILE.md. Writes into FILE.md the tables between
``<!-- older:NAME -->`` and ``<!-- end -->``; NAME is one of `TABLES`.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from benchmarks import markdown
from benchmarks.lines import read_lines
from benchmarks.markdown import spread, table
from benchmarks.older.methods import HEADER, SEARCH, MethodRun, rows
from benchmarks.older.records import Records, identical_of

SIZES = ("adapter8", "adapter64", "adapter256")
LEARNERS = (
    *("independent", "adapter256", "adapter64", "adapter8", "joint", "replay500", "replay50"),
    *("frozen", "finetune", "shared_adapter", "lwf", "lora"),
)
LARGE = ("independent", "adapter64", "adapter8", "replay50", "finetune")
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
        group: ``given`` or ``mpnet``.
        learner: its name there.
    """
    runs, name = records.seeds(group, learner), NAMES.get(learner, f"`{learner}`")
    metrics = [
        spread([run.metrics[key] or 0.0 for run in runs])
        for key in ("average_score", "learning_score", "forgetting")
    ]
    memory = identical_of([run.memory.tasks_identical for run in runs])
    return name, *metrics, memory, f"{runs[0].ledger.total_multiple:.2f} x", str(len(runs))


def best_first(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of `COLUMNS` as a table, the highest score at the end first."""
    return table(COLUMNS, sorted(lines, key=lambda line: -float(line[1].split()[0])))


def many_rows(results: Path) -> str:
    """Return every learner over the stream with up to 20,000 rows a task."""
    records = Records.of(results / "houlsby26", ["given"])
    lines = [measured(records, "given", learner) for learner in LEARNERS]
    return best_first([*lines, best_sizes(records)])


def large(results: Path) -> str:
    """Return the comparison with an encoder of BERT-base's size."""
    records = Records.of(results / "houlsby26", ["mpnet"])
    return best_first([measured(records, "mpnet", learner) for learner in LARGE])


def best_sizes(records: Records) -> Sequence[str]:
    """Return the line of adapters whose size each task's validation rows chose.

    Tasks are isolated, so a task's score is that of the run of its size.
    """
    ends, firsts, lost, identical, totals = [], [], [], [], []
    for seed in (1, 2, 3):
        validation = {size: records.validation(size, seed) for size in SIZES}
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
    shown = spread(ends), spread(firsts), spread(lost), identical_of(identical)
    return "`adapter`, size by validation", *shown, f"{mean(totals):.2f} x", str(len(ends))


def ten_tasks(results: Path) -> str:
    """Return all methods on ten tasks."""
    return table(HEADER, rows(read_lines(results / "methods/table.jsonl", MethodRun), list(SEARCH)))


TABLES: dict[str, Callable[[Path], str]] = {f.__name__: f for f in (many_rows, large, ten_tasks)}


def fill(path: Path, results: Path) -> None:
    """Write the tables into a Markdown file."""
    markdown.fill(path, "older", lambda name: TABLES[name](results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("file", type=Path, metavar="FILE.md")
    given = parser.parse_args(arguments)
    fill(given.file, given.results)


if __name__ == "__main__":
    main()
