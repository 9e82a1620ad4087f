"""Tables of the paper's ablations in Markdown."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

import numpy as np

from benchmarks.evidence.ablation_quantities import (
    Best,
    best_of,
    effect,
    lost_without,
    minus,
    runs_of,
    scores_of,
)
from benchmarks.evidence.ablation_verdicts import LOWER_AND_UPPER, judged
from benchmarks.evidence.ablations import (
    ABLATIONS,
    AS_CHOSEN,
    BY_RATE,
    CHOSEN_STD,
    FULL,
    NORMS,
    SIZES,
    STDS,
    TASKS,
    TOP,
    WHOLE,
)
from benchmarks.evidence.comparisons import shown
from benchmarks.evidence.layers import named_range, read_layers
from benchmarks.evidence.methods import Method
from benchmarks.evidence.published import TABLE_2
from benchmarks.evidence.quantities import GIVEN, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.tables import NOT_RUN
from benchmarks.markdown import spread, table
from stream.formatting import DASH, MINUS, percent

TITLES = tuple(title.replace(", ", " (") + ")" for title in TASKS.values())
NO_ENCODER = "tfidf"
OF_TABLE_2 = ("2", "8", "64")
"""The sizes among which table 2 chooses, as in the paper."""


def ablations(records: Records) -> str:
    """Return the methods of the plan: what is set, and what each task chooses within the run."""
    del records  # the plan alone
    lines = []
    for method in ABLATIONS:
        fixed = [text for text in method.settings if text != method.choice]
        head = f"head_lr of `{method.head_of}`" if method.head_of else ""
        chosen = f"`{method.choice}`" if method.choice else ""
        more = "; ".join(filter(None, (head, chosen))) or "nothing"
        lines.append((f"`{method.name}`", f"`{' '.join(fixed)}`", more))
    return table("method,settings,further", lines)


def ablation_claims(records: Records) -> str:
    """Return every claim about the ablations, what was found, and the verdict."""
    lines = [
        (one.claim, "; ".join(part.found for part in one.parts), f"**{one.verdict}**")
        for one in judged(records)
    ]
    return table("claim,here,verdict", lines)


def first_weights(records: Records) -> str:
    """Return the scores with first weights of several deviations."""

    def lines() -> Iterator[Sequence[str]]:
        for std, method in STDS.items():
            apart = DASH if std == CHOSEN_STD else difference(records, method, AS_CHOSEN)
            yield std, *by_task(records, method), apart, seeds(records, method)

    header = ("deviation", *TITLES, "mean", f"minus {CHOSEN_STD}, points", "seeds")
    return table(header, lines())


def rates(records: Records) -> str:
    """Return the scores of both ways of learning at all rates."""

    def lines() -> Iterator[Sequence[str]]:
        for learner, methods in BY_RATE.items():
            for rate, method in methods.items():
                yield f"`{learner}`", rate, *by_task(records, method), seeds(records, method)

    return table(("method", "rate", *TITLES, "mean", "seeds"), lines())


def sizes(records: Records) -> str:
    """Return the scores of every size with the parameters that it trains for a task."""
    names = {f"adapters of {size}": method for size, method in SIZES.items()}
    names |= {f"top {k} of 6 layers": method for k, method in TOP.items()}
    names |= {"LayerNorms": NORMS, f"whole models (`{WHOLE}`)": FULL}
    if not any(runs_of(records, method) for method in names.values()):
        return f"Not run yet: {', '.join(names)}."

    def lines() -> Iterator[Sequence[str]]:
        for name, method in names.items():
            apart = DASH if method == FULL else difference(records, method, FULL)
            row = *by_task(records, method), apart, rates_chosen(records, method)
            yield name, trained(records, method), *row, seeds(records, method)

    header = ("trained", "parameters a task", *TITLES, "mean")
    return table((*header, "minus whole models, points", "rates chosen", "seeds"), lines())


def layers(records: Records) -> str:
    """Return the scores without the adapters of some ranges of layers."""
    lost = lost_without(records)
    found = [one for seed in runs_of(records, AS_CHOSEN) if (one := read_layers(records, seed))]
    if not found:
        return "Not run yet."
    last = len(lost) - 1
    pairs = [pair for both in reversed(LOWER_AND_UPPER) for pair in both]
    ranges = [*((layer, layer) for layer in range(last + 1)), *pairs, (0, last)]

    def line(name: str, cells: Mapping[str, Sequence[float]], apart: str) -> Sequence[str]:
        return name, *(spread(cells[task]) for task in TASKS), apart, str(len(found))

    def lines() -> Iterator[Sequence[str]]:
        yield line("none", {t: [one[t].full for one in found] for t in TASKS}, DASH)
        for where in ranges:
            cells = {t: [float(one[t].without[where]) for one in found] for t in TASKS}
            told = effect(lost[where])
            apart = NOT_RUN if told is None else shown(told)
            yield line("all" if where == (0, last) else named_range(*where), cells, apart)
        nothing = {t: [one[t].majority for one in found] for t in TASKS}
        yield line("the majority answer", nothing, DASH)

    return table(("layers without adapters", *TITLES, "loss, points", "seeds"), lines())


def table_2(records: Records) -> str:
    """Return the columns of the paper's table 2, each of its own choice for each task."""
    whole = scores_of(records, [FULL])[0]
    top, adapters = (best_of(records, methods) for methods in _choices())
    none = np.array(
        [[scores(run)[task] for run in records.five(GIVEN, NO_ENCODER)] for task in TASKS]
    ).reshape(len(TASKS), -1)

    def lines() -> Iterator[Sequence[str]]:
        columns = none, whole, top.scores, adapters.scores
        for place, (task, title) in enumerate(zip(TASKS, TITLES, strict=True)):
            cells = [spread([*column[place]]) for column in columns]
            k, size = _chosen(top, TOP, place), _chosen(adapters, OF_TABLE_2, place)
            published = " / ".join(map(str, TABLE_2[task])) if task in TABLE_2 else DASH
            yield title, *cells[:3], k, cells[3], size, published
        means = [spread([*column.mean(axis=0)]) for column in columns]
        yield "mean", *means[:3], DASH, means[3], DASH, DASH
        apart = [_less_whole(records, best) for best in (top, adapters)]
        yield f"{MINUS} full, points", DASH, DASH, apart[0], DASH, apart[1], DASH, DASH
        parts = [_part(records, m, b) for m, b in zip(_choices(), (top, adapters), strict=True)]
        yield "trained a task", DASH, "100%", parts[0], DASH, parts[1], DASH, DASH

    header = ("task", f"no encoder (`{NO_ENCODER}`)", "full fine-tuning", "variable fine-tuning")
    more = ("layers chosen", "adapters", "sizes chosen", "paper: the four columns")
    return table((*header, *more), lines())


def _choices() -> tuple[list[Method], list[Method]]:
    """Return the methods among which variable fine-tuning, and adapters, choose."""
    return [*TOP.values()], [SIZES[size] for size in OF_TABLE_2]


def _chosen(best: Best, names: Sequence[str] | Mapping[str, Method], task: int) -> str:
    """Return what was chosen for a task with how many seeds."""
    found = Counter([*names][place] for place in best.places[task])
    return "; ".join(f"{name}: {found[name]}" for name in names if name in found) or NOT_RUN


def _less_whole(records: Records, best: Best) -> str:
    runs = runs_of(records, FULL)
    common = [seed for seed in best.seeds if seed in runs]
    columns = [best.seeds.index(seed) for seed in common]
    full = [[scores(runs[seed])[task] for seed in common] for task in TASKS]
    told = effect(best.scores[:, columns] - np.array(full).reshape(len(TASKS), len(common)))
    return NOT_RUN if told is None else shown(told)


def _part(records: Records, methods: Sequence[Method], best: Best) -> str:
    """Return what is trained for a task, in the mean over tasks and seeds."""
    if not best.seeds:
        return NOT_RUN
    fractions = []
    for task, name in enumerate(TASKS):
        for place in best.places[task]:
            run = next(iter(runs_of(records, methods[place]).values()))
            fractions.append(run.ledger.tasks[run.order.index(name)].trained_fraction)
    return f"{percent(mean(fractions))}%"


def by_task(records: Records, method: Method) -> list[str]:
    """Return the score of each task and their mean, with intervals over seeds."""
    found = scores_of(records, [method])[0]
    return [spread([*row]) for row in (*found, found.mean(axis=0))]


def difference(records: Records, method: Method, other: Method) -> str:
    """Return a difference with its interval over tasks and seeds, in points."""
    found = effect(minus(records, method, other))
    return NOT_RUN if found is None else shown(found)


def seeds(records: Records, method: Method) -> str:
    """Return with how many seeds a method was run."""
    return str(len(runs_of(records, method)))


def trained(records: Records, method: Method) -> str:
    """Return how many numbers are trained for a task, and their part of the encoder."""
    run = next(iter(runs_of(records, method).values()), None)
    if run is None:
        return NOT_RUN
    numbers = mean(row.trained_parameters for row in run.ledger.tasks)
    part = mean(row.trained_fraction for row in run.ledger.tasks)
    return f"{numbers:,.0f} ({percent(part, 2)}%)"


def rates_chosen(records: Records, method: Method) -> str:
    """Return how often each rate was chosen, over tasks and seeds."""
    found = Counter(
        run.settings_of(task)["lr"]
        for run in runs_of(records, method).values()
        for task in run.order
    )
    return "; ".join(f"{rate:g}: {number}" for rate, number in sorted(found.items())) or NOT_RUN
