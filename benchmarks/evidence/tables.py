"""Tables of methods in Markdown: scores and costs, differences, orders, the claims."""

from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median

from analysis.runs.estimate import Estimate
from benchmarks.evidence.comparisons import (
    COMPARISONS,
    QUANTITIES,
    Comparison,
    Found,
    compared,
    p_value,
    points,
    shown,
)
from benchmarks.evidence.methods import CORE, METHODS
from benchmarks.evidence.plan import COUNTED, IN_OTHER_ORDERS, SEEDS
from benchmarks.evidence.quantities import (
    GIVEN,
    IN_ORDERS,
    in_orders,
    normalized_scores,
    range_of,
)
from benchmarks.evidence.records import Records
from benchmarks.evidence.verdicts import judged
from benchmarks.markdown import spread, table
from stream.formatting import DASH, MINUS, percent
from stream.record.run_record import RunRecord

HEADLINE = (
    *("independent_per_task", "independent", "joint", "adapter_per_task", "adapter"),
    *("ia3", "si", "replay", "ewc", "finetune", "shared_adapter", "majority"),
)
"""The methods of README's table: those of its sentences, and the best of the other kinds."""
NOT_RUN = "not run"
CHOSEN = "_per_task"


def named(method: str) -> str:
    """Return what a method is called in tables."""
    learner = method.removesuffix(CHOSEN)
    return f"`{learner}`" if learner == method else f"`{learner}`, chosen per task"


def left_out(methods: Sequence[str], group: str) -> str:
    """Return which methods of a group were not run, in a sentence; nothing where all were."""
    names = ", ".join(f"`{method}`" for method in methods)
    return f"Not run in `{group}`: {names}." if methods else ""


def two_digits(value: float | None) -> str:
    """Return a number with two digits behind the point."""
    return DASH if value is None else f"{value:.2f}".replace("-", MINUS)


def normal(records: Records, method: str, group: str = GIVEN) -> str:
    """Return a method's normalized score and half of its interval."""
    values = normalized_scores(records, method, group)
    return Estimate.of(values).show(two_digits, len(values))


def metric(runs: Sequence[RunRecord], name: str) -> str:
    """Return a metric's mean and half of its interval, in points."""
    return spread([value for run in runs if (value := run.metrics[name]) is not None])


def identical(runs: Sequence[RunRecord]) -> str:
    """Return how many of the earlier tasks have the logits they had, from least to most."""
    found = sorted({run.memory.tasks_identical for run in runs})
    of = runs[0].memory.tasks_checked
    return f"{found[0]}{f' to {found[-1]}' if len(found) > 1 else ''} of {of}"


def seconds(runs: Sequence[RunRecord]) -> str:
    """Return the seconds of learning, choosing among candidates included."""
    return f"{mean(run.timing.train_s + run.timing.select_s for run in runs):,.0f}"


def steps(runs: Sequence[RunRecord]) -> str:
    """Return the steps of a run, those of all candidates included."""
    return f"{median(run.timing.steps for run in runs):,.0f}"


def stored(runs: Sequence[RunRecord]) -> str:
    """Return what is stored for all tasks, in encoders."""
    return f"{runs[0].ledger.total_multiple or 0.0:.2f}"


def trained(runs: Sequence[RunRecord]) -> str:
    """Return the numbers that are trained for a task, the mean over tasks."""
    return f"{mean(row.trained_parameters for row in runs[0].ledger.tasks):,.0f}"


def operations(records: Records, method: str, runs: Sequence[RunRecord]) -> str:
    """Return the operations of learning: those of a short stream, task by task, by the examples."""
    counted = records.seeds(COUNTED.name, method).get(SEEDS[0])
    if counted is None or counted.flops is None:
        return DASH
    short = dict(zip(counted.order, counted.timing.by_task.train_examples, strict=True))
    spent = dict(zip(counted.order, counted.flops.train, strict=True))
    each = zip(runs[0].order, runs[0].timing.by_task.train_examples, strict=True)
    total = sum(spent[task] * number / short[task] for task, number in each if short[task])
    return f"{total:.1e}"


Column = Callable[[Records, str, Sequence[RunRecord]], str]
COLUMNS: dict[str, Column] = {
    "score at the end": lambda _, __, runs: metric(runs, "average_score"),
    "normalized": lambda records, method, _: normal(records, method),
    "right after learning": lambda _, __, runs: metric(runs, "learning_score"),
    "forgetting": lambda _, __, runs: metric(runs, "forgetting"),
    "bit-identical": lambda _, __, runs: identical(runs),
    "stored (encoders)": lambda _, __, runs: stored(runs),
    "trained a task": lambda _, __, runs: trained(runs),
    "steps": lambda _, __, runs: steps(runs),
    "operations": operations,
    "learning (s)": lambda _, __, runs: seconds(runs),
    "seeds": lambda _, __, runs: str(len(runs)),
}
BRIEF = (
    *("score at the end", "normalized", "forgetting", "bit-identical"),
    *("stored (encoders)", "steps", "learning (s)", "seeds"),
)


def by_method(records: Records, methods: Sequence[str], columns: Sequence[str]) -> str:
    """Return a line a method, the highest score at the end first.

    Args:
        records: all of them.
        methods: names in the plan.
        columns: names in `COLUMNS`.
    """

    def line(method: str) -> Sequence[str]:
        runs = records.five(GIVEN, method)
        cells = [COLUMNS[name](records, method, runs) if runs else NOT_RUN for name in columns]
        return named(method), *cells

    def place(method: str) -> float:
        runs = records.five(GIVEN, method)
        return -mean(run.metrics["average_score"] or 0.0 for run in runs) if runs else 1.0

    return table(("method", *columns), map(line, sorted(methods, key=place)))


def main(records: Records) -> str:
    """Return every method in the given order; of those beside the claims, what was run."""
    more = [m for m in METHODS if m in CORE or records.five(GIVEN, m.name)]
    return by_method(records, [method.name for method in more], list(COLUMNS))


def brief(records: Records) -> str:
    """Return the table of the README: what was run of the methods that it is about."""
    there = [method for method in HEADLINE if records.five(GIVEN, method)]
    return by_method(records, there or HEADLINE, BRIEF)


def differences(records: Records) -> str:
    """Return the differences that the claims are about."""

    def line(comparison: Comparison, found: Found | None) -> Sequence[str]:
        other = named(comparison.other) if comparison.other else "nothing"
        what = comparison.quantity, named(comparison.method), other
        if found is None:
            return *what, *[NOT_RUN] * 4
        seeds = found.effect.over_seeds
        alone = f"[{', '.join(map(points, seeds.interval or ()))}]"
        p = p_value(found.p).removeprefix("= ")
        return *what, shown(found.effect), alone, p, str(seeds.n)

    found = compared(records)
    names = (
        *("quantity", "method", "minus", "points [interval over tasks and seeds]"),
        *("over seeds alone", "p (Holm)", "seeds"),
    )
    return table(names, (line(comparison, found.get(comparison)) for comparison in COMPARISONS))


def against_finetune(records: Records) -> str:
    """Return how far methods that train one encoder along the stream are from fine-tuning.

    Those of the claims and others; nothing is corrected. Methods without two seeds are left out.
    """

    def lines() -> Iterator[Sequence[str]]:
        for method in ("replay", *(one.name for one in METHODS if one.head_of == "finetune")):
            both = [Comparison(what, method, "finetune").effect(records) for what in QUANTITIES]
            ends, forgets = both
            if ends is None or forgets is None:
                continue
            seeds = ends.over_seeds
            alone = f"[{', '.join(map(points, seeds.interval or ()))}]"
            yield named(method), shown(ends), alone, shown(forgets), str(seeds.n)

    names = ("method", f"score at the end {MINUS} `finetune` [over tasks and seeds]")
    return table((*names, "over seeds alone", f"forgetting {MINUS} `finetune`", "seeds"), lines())


def orders(records: Records) -> str:
    """Return the score at the end in every order with the first seed, and what seeds change."""

    def line(method: str) -> Sequence[str]:
        cells = []
        for group in IN_ORDERS:
            run = records.seeds(group, method).get(SEEDS[0])
            cells.append(NOT_RUN if run is None else percent(run.metrics["average_score"]))
        whole = len(in_orders(records, method)) == len(IN_ORDERS)
        seeds = records.five(GIVEN, method)
        ends = [
            [run.metrics["average_score"] or 0.0 for run in runs]
            for runs in (in_orders(records, method), seeds)
        ]
        over_orders = percent(range_of(ends[0])) if whole else DASH
        over_seeds = percent(range_of(ends[1])) if len(seeds) > 1 else DASH
        return named(method), *cells, over_orders, over_seeds

    names = ["given", *(group.removeprefix(f"{GIVEN}-") for group in IN_ORDERS[1:])]
    header = ["method", *names, "range over orders", "range over seeds"]
    return table(header, map(line, IN_OTHER_ORDERS))


def claims(records: Records) -> str:
    """Return every claim of docs/protocol.md, what was found, and the verdict."""
    lines = [
        (one.claim, "; ".join(part.found for part in one.parts), f"**{one.verdict}**")
        for one in judged(records)
    ]
    return table("claim,here,verdict", lines)
