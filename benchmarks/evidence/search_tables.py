"""Tables of the settings in Markdown: what is searched, what was chosen, what each task prefers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from benchmarks.evidence.methods import CORE, METHODS, Method
from benchmarks.evidence.plan import MINILM, MORE_SEEDS, SEEDS, TEN_SEEDS
from benchmarks.evidence.quantities import GIVEN
from benchmarks.evidence.records import Records
from benchmarks.evidence.searches import KeptSearch, best_search, chosen_for, kept_searches
from benchmarks.evidence.tables import NOT_RUN, named
from benchmarks.markdown import table
from stream.formatting import DASH, percent
from stream.tuning.grid import INSIDE

SHARED = ("finetune", "replay", "ewc", "lwf", "derpp", "si")
"""Methods whose tasks share an encoder that is trained."""
ONE_RATE = {"lr": 3e-5, "head_lr": 3e-3}
"""What the searches of all of them tried, and what most chose nearly."""


def settings(values: Mapping[str, Any]) -> str:
    """Return settings as they are typed."""
    return ", ".join(f"{key}={value:g}" for key, value in values.items()) or DASH


def methods(records: Records) -> str:
    """Return the methods of the plan, and what their searches begin with."""
    del records  # the plan alone

    def line(method: Method) -> Sequence[str]:
        begun = [
            f"{key} {', '.join(f'{value:g}' for value in values)}"
            for key, values in method.searched.items()
        ]
        more = [f"head_lr of `{method.head_of}`"] if method.head_of else []
        chosen = [f"within the run: `{method.choice}`"] if method.choice else []
        most = (MORE_SEEDS if method.name in TEN_SEEDS else SEEDS)[-1]
        said = "; ".join([*begun, *more, *chosen]) or "nothing to choose"
        fixed = method.settings[:1] if method.choice else method.settings
        return f"`{method.name}`", f"`{' '.join(fixed)}`", said, f"1 to {most}"

    return table("method,settings,the search begins with,seeds", map(line, METHODS))


def searches(records: Records) -> str:
    """Return what was chosen of each method."""

    def line(method: Method) -> Sequence[str]:
        kept = kept_searches(records.out, GIVEN, method.name)
        chosen = chosen_for(records.out, MINILM, method)
        if not kept or chosen is None:
            return named(method.name), *[NOT_RUN] * 4
        best = best_search(kept)
        outside = [f"{key}: {told}" for key, told in ends(kept).items() if told != INSIDE]
        tried, score = ", then ".join(map(trials, kept)), percent(best.best.score)
        return named(method.name), tried, settings(chosen), "; ".join(outside) or "yes", score

    kept = {m.name for m in METHODS if kept_searches(records.out, GIVEN, m.name)}
    searched = [m for m in METHODS if m.searched and (m in CORE or m.name in kept)]
    return table("method,trials,chosen,inside what was tried,validation score", map(line, searched))


def ends(kept: Sequence[KeptSearch]) -> dict[str, str]:
    """Return of every value that was chosen whether it lies inside what all searches tried.

    A search judges by its own trials; another one may have gone on beyond its ends.
    """
    best = best_search(kept)
    if len(kept) == 1:
        return best.found.ends
    tried = [trial.settings for search in kept for trial in search.found.trials]

    def told(key: str, of_its_search: str) -> str:
        values = [one[key] for one in tried if {**one, key: best.chosen[key]} == best.chosen]
        return INSIDE if min(values) < best.chosen[key] < max(values) else of_its_search

    return {key: told(key, found) for key, found in best.found.ends.items()}


def at_one_rate(records: Records) -> str:
    """Return validation scores of what shares an encoder: at one rate, and at the chosen one.

    Of several strengths at this rate it is the best one.
    """

    def line(method: str) -> Sequence[str]:
        kept = kept_searches(records.out, GIVEN, method)
        trials = [trial for search in kept for trial in search.found.trials]
        same = [
            trial.score
            for trial in trials
            if trial.score is not None and ONE_RATE.items() <= trial.settings.items()
        ]
        if not same:
            return named(method), *[NOT_RUN] * 3
        best = best_search(kept).best
        return named(method), percent(max(same)), settings(best.settings), percent(best.score)

    header = ("method", f"with {settings(ONE_RATE)}", "chosen", "with what was chosen")
    return table(header, map(line, SHARED))


def trials(kept: KeptSearch) -> str:
    """Return how many trials a search has, and how many of them ended well if not all did."""
    tried = kept.found.trials
    done = sum(trial.status == "complete" for trial in tried)
    return str(done) if done == len(tried) else f"{done} of {len(tried)}"


def best_of_each(searches: Sequence[KeptSearch]) -> tuple[float, Counter[str]]:
    """Return what the best trial of each task would score on average, and which trials these are.

    Of equal scores it is the trial that was tried first.
    """
    found, total = Counter[str](), 0.0
    tried = [
        (settings(kept.found.trials[number].settings), by_task)
        for kept in searches
        for number, by_task in sorted(kept.scores.items())
    ]
    num_tasks = len(searches[0].tasks)
    for place in range(num_tasks):
        scores = [(name, by_task[place]) for name, by_task in tried]
        name, score = max(scores, key=lambda one: -1.0 if one[1] is None else one[1])
        found[name] += 1
        total += score or 0.0
    return total / num_tasks, found


def told(counts: Counter[str]) -> str:
    """Return what was chosen how often, most often first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{value}: {number}" for value, number in ranked)


def per_task_choice(records: Records) -> str:
    """Return what a choice for each task gains over one setting for all, on validation rows."""

    def lines() -> Iterator[Sequence[str]]:
        for method in METHODS:
            if not (method.isolated and method.searched):
                continue
            kept = kept_searches(records.out, GIVEN, method.name)
            if not kept and method not in CORE:
                continue
            if not kept:
                yield named(method.name), *[NOT_RUN] * 3
                continue
            each, counts = best_of_each(kept)
            one = best_search(kept).best.score
            yield named(method.name), percent(one), percent(each), told(counts)
        for method in METHODS:
            if method.choice:
                yield named(method.name), DASH, *within_runs(records, method.name)

    names = (
        "method,one setting for all tasks,the best of each task,what was chosen for how many tasks"
    )
    return table(names, lines())


def within_runs(records: Records, method: str) -> tuple[str, str]:
    """Return the validation score of what runs chose for their tasks, and what that was."""
    runs = records.five(GIVEN, method)
    chosen = [
        task.candidates[task.chosen]
        for run in runs
        for task in run.selection.values()
        if task.chosen is not None
    ]
    if not chosen:
        return NOT_RUN, NOT_RUN
    scores = [candidate.score for candidate in chosen if candidate.score is not None]
    return percent(mean(scores)), told(Counter(settings(one.settings) for one in chosen))
