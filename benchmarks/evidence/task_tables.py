"""Tables of tasks in Markdown: the score of each, which ones failed; and what was not run."""

from collections.abc import Iterator, Sequence

from benchmarks.evidence.methods import SIZES
from benchmarks.evidence.plan import CHOSEN_PER_TASK, jobs
from benchmarks.evidence.published import ALL
from benchmarks.evidence.quantities import ENCODERS, GIVEN, failed, failed_pairs, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.search_tables import settings
from benchmarks.evidence.searches import kept_searches
from benchmarks.evidence.tables import NOT_RUN, named
from benchmarks.markdown import spread, table
from stream.formatting import DASH, count, percent

BY_TASK = (
    *("independent", "adapter", "independent_per_task", "adapter_per_task", "frozen", "finetune"),
)
METRICS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "matthews_correlation": "Matthews",
    "spearman": "Spearman",
}
BOTH = ("adapter", "independent", *CHOSEN_PER_TASK)
OTHER_SIZES = [method.name for method in SIZES if method.learner == "adapter"]
TRIED = [
    (encoder, group, method)
    for encoder, group in ENCODERS.items()
    for method in (*BOTH, *OTHER_SIZES)
    if method in BOTH or group == GIVEN
]
"""Of what failures are told; other sizes ran with MiniLM alone."""
NOTHING_YET = "Not run yet."


def tasks(records: Records) -> str:
    """Return the score of every task at the end, beside what the paper prints."""
    found = {name: records.five(GIVEN, name) for name in BY_TASK}
    some = next((runs[0] for runs in found.values() if runs), None)
    if some is None:
        return NOTHING_YET
    by_name = {name: [scores(run) for run in runs] for name, runs in found.items()}

    def lines() -> Iterator[Sequence[str]]:
        for place, task in enumerate(some.order):
            cells = [spread([row[task] for row in rows]) for rows in by_name.values()]
            nothing = percent(some.majority[place]) if some.majority else DASH
            published = map(str, ALL.get(task, (DASH, DASH)))
            yield some.titles[place], METRICS[some.metric_names[place]], nothing, *cells, *published

    header = ["task", "metric", "majority", *map(named, BY_TASK), "paper: full", "paper: adapters"]
    return table(header, lines())


def failures(records: Records) -> str:
    """Return which tasks stayed at the majority answer although whole models learn them."""

    def lines() -> Iterator[Sequence[str]]:
        for encoder, group, method in TRIED:
            runs = records.seeds(group, method)
            if not runs:
                yield encoder, named(method), *[NOT_RUN] * 3
                continue
            found = failed(records, group, method)
            which = [f"{task} ({shortly(seeds)})" for task, seeds in found.items()]
            number, of = failed_pairs(records, group, method)
            tried = f"{count(len(runs), 'run')}, {count(of // len(runs), 'task')} each"
            yield encoder, named(method), tried, str(number), "; ".join(which) or "none"

    return table("encoder,method,tried,at the majority answer,which", lines())


def missing(records: Records) -> str:
    """Return what was planned and is not there: groups that lack the same have one line."""
    planned = [*jobs()]
    seeds: dict[tuple[str, str], list[int]] = {}
    for job in planned:
        if job.name not in records.runs:
            seeds.setdefault((job.group.name, job.method.name), []).append(job.seed)
    if not seeds and not records.pending:
        return "Every planned run is there."
    methods: dict[tuple[str, str], list[str]] = {}
    for (group, method), left in seeds.items():
        methods.setdefault((group, shortly(left)), []).append(f"`{method}`")
    groups: dict[tuple[str, str], list[str]] = {}
    for (group, left), names in methods.items():
        groups.setdefault((left, ", ".join(names)), []).append(f"`{group}`")
    number = sum(map(len, seeds.values()))
    lines = [f"Of {count(len(planned), 'planned run')}, {number} are not there:", ""]
    lines += [f"- {', '.join(of)}; {left}: {names}" for (left, names), of in groups.items()]
    replaced = [f"`{name}`" for name in records.kept.keys() - records.runs.keys()]
    if replaced:
        lines += ["", f"Kept, and in no other table: {', '.join(sorted(replaced))}."]
    return "\n".join([*lines, *pending(records)])


def pending(records: Records) -> Iterator[str]:
    """Say of which methods a second search chose other settings than the runs of tables have."""
    for name in records.pending:
        first, second = kept_searches(records.out, GIVEN, name)
        was, now = (percent(search.best.score) for search in (first, second))
        yield ""
        yield (
            f"`{name}` is to be run again with what a second search chose: "
            f"{settings(second.chosen)}, {now} on validation rows instead of {was}. Until all "
            "seeds are there, tables and claims are made of the runs with what the first one chose."
        )


def shortly(seeds: Sequence[int]) -> str:
    """Return seeds that ascend in words: ``seeds 1 to 5`` where none between is left out."""
    noun = "seed" if len(seeds) == 1 else "seeds"
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{noun} {seeds[0]} to {seeds[-1]}"
    return f"{noun} {', '.join(map(str, seeds))}"
