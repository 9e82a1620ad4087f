"""Sentences with numbers in README and docs/paper.md, written from the records.

A sentence whose runs are not there is left out.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import mean

import numpy as np

from benchmarks.evidence.comparisons import (
    ONE_SETTING,
    PER_TASK,
    Comparison,
    Found,
    apart,
    compared,
)
from benchmarks.evidence.longer import with_longer
from benchmarks.evidence.plan import INFERRED, MPNET
from benchmarks.evidence.quantities import (
    GIVEN,
    adapter_runs,
    differences,
    failed_pairs,
    is_perfect,
    majority,
    scores,
)
from benchmarks.evidence.records import Records
from benchmarks.evidence.searches import kept_searches
from benchmarks.evidence.statistics import Effect
from benchmarks.evidence.verdicts import WITHIN, WITHIN_PER_TASK, Verdict, judged
from stream.formatting import count, percent
from stream.record.run_record import RunRecord


def headline(records: Records) -> str:
    """Return what the table of the README shows, as a list."""
    found = compared(records)
    sentences = [
        _one_setting(records, found.get(ONE_SETTING)),
        _memory(records),
        _chosen_per_task(records, found.get(PER_TASK)),
        _other_encoder(records),
        _sizes(records),
        _bounds(records),
        _sequential(records),
        *(_second_search(records, name) for name in records.pending),
        *(_loses(records, name, what) for name, what in REMEDIES.items()),
        _inferred(records),
    ]
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence) or "Not run yet."


SAID = {
    Verdict.AGREES: "holds",
    Verdict.CONTRADICTED: "does not hold",
    Verdict.OPEN: "is open",
}
REMEDIES = {
    "replay": "Replay, which stores examples,",
    "ewc": "EWC, which holds weights back,",
    "shared_adapter": "One set of adapters for all tasks (`shared_adapter`)",
}


def average(runs: Sequence[RunRecord], name: str) -> str:
    """Return the mean of a metric, in points."""
    return percent(mean(run.metrics[name] or 0.0 for run in runs))


def _one_setting(records: Records, found: Found | None) -> str:
    if found is None:
        return ""
    adapter, whole = (
        records.five(GIVEN, name)[0].ledger.total_multiple or 0.0
        for name in ("adapter", "independent")
    )
    text = apart(found.effect, "a whole model per task")
    return (
        f"With one setting for all tasks, adapters end {text}. The claim that they are within 0.8 "
        f"points {said(records, WITHIN)}. {adapter:.2f} encoders are stored instead of {whole:.2f}."
    )


def said(records: Records, claim: str) -> str:
    """Return what the records say of a claim, as the end of a sentence."""
    (verdict,) = [one.verdict for one in judged(records) if one.claim == claim]
    return SAID[verdict]


def _memory(records: Records) -> str:
    runs = adapter_runs(records)
    if not runs:
        return ""
    perfect = sum(map(is_perfect, runs))
    earlier = len(runs[0].order) - 1
    return (
        f"In {perfect} of {count(len(runs), 'run')} of adapters nothing is forgotten: each of the "
        f"{earlier} earlier tasks ends with the logits that it had right after it was learned, bit "
        "for bit."
    )


def _chosen_per_task(records: Records, found: Found | None) -> str:
    if found is None:
        return ""
    text = apart(found.effect, "whole models that are chosen alike")
    longer = with_longer(records)
    more = (
        ""
        if longer is None
        else " If each method may learn the four tasks on which adapters lag most for 20 epochs "
        f"instead of 3, as validation rows prefer, adapters end {apart(longer, 'whole models')}. "
        "These tasks were picked by test scores, which favours adapters and narrows the interval."
    )
    return (
        "With rate and start chosen for each task (in the paper sizes and epochs, too), adapters "
        f"end {text}. The claim that they are within 0.4 points {said(records, WITHIN_PER_TASK)}."
        f"{more}"
    )


def _other_encoder(records: Records) -> str:
    effect = ONE_SETTING.effect(records, MPNET.name)
    if effect is None:
        return ""
    failed, failed_whole = _failed(records, ONE_SETTING)
    told = (
        f"With MPNet, a larger encoder, adapters end {apart(effect, 'a whole model per task')}: at "
        f"the rate that was chosen, training failed in {failed} (task, seed) pairs, that of whole "
        f"models in {failed_whole}."
    )
    chosen = PER_TASK.effect(records, MPNET.name)
    if chosen is None:
        return told
    failed, failed_whole = _failed(records, PER_TASK)
    return (
        f"{told} With rate and start chosen for each task they end {apart(chosen, 'whole models')}"
        f", and training failed in {failed}, that of whole models in {failed_whole}."
    )


def _failed(records: Records, comparison: Comparison) -> list[str]:
    """Return how many pairs of two methods failed with MPNet, such as ``10 of 130``."""
    pairs = (failed_pairs(records, MPNET.name, m) for m in (comparison.method, comparison.other))
    return [f"{number} of {of}" for number, of in pairs]


def _sizes(records: Records) -> str:
    small = _against_whole(records, "adapter_2", "end")
    top = _against_whole(records, "topk", "ends")
    if not (small and top):
        return ""
    return f"Adapters of 2 units, {small}; the top layer alone, {top}."


def _against_whole(records: Records, method: str, ends: str) -> str:
    runs, d = records.five(GIVEN, method), differences(records, scores, method, "independent")
    if d.ndim < 2 or d.shape[1] < 2:
        return ""
    part = mean(row.trained_fraction for row in runs[0].ledger.tasks)
    text = apart(Effect.of(d), "whole models")
    return f"{percent(part, 2)}% of the encoder a task, {ends} {text}"


def _bounds(records: Records) -> str:
    runs = records.five(GIVEN, "adapter")
    frozen = records.five(GIVEN, "frozen")
    if not (runs and frozen):
        return ""
    nothing = percent(mean(mean(majority(run).values()) for run in runs))
    words = records.five(GIVEN, "tfidf")
    without = f", TF-IDF without any encoder {average(words, 'average_score')}" if words else ""
    return (
        f"Always giving the majority answer scores {nothing}, a head on the untouched encoder "
        f"{average(frozen, 'average_score')}{without}."
    )


def _sequential(records: Records) -> str:
    runs, whole = (records.five(GIVEN, name) for name in ("finetune", "independent"))
    if not (runs and whole):
        return ""
    return (
        f"One encoder that is fine-tuned along the stream scores "
        f"{average(runs, 'learning_score')} right after each task (a whole model each: "
        f"{average(whole, 'learning_score')}) and {average(runs, 'average_score')} at the end; "
        f"from the best score that each task ever had, {average(runs, 'forgetting')} are lost."
    )


def _second_search(records: Records, method: str) -> str:
    first, second = (search.best.score for search in kept_searches(records.out, GIVEN, method))
    return (
        f"A second search of the rates of `{method}` found {percent(second)} instead of "
        f"{percent(first)} on validation rows; runs with these are not there yet."
    )


def _inferred(records: Records) -> str:
    runs = records.five(INFERRED.name, "adapter")
    if not runs:
        return ""
    return (
        "Where the task of each text has to be inferred, the same adapters end at "
        f"{average(runs, 'routed_average_score')} instead of {average(runs, 'average_score')}."
    )


def _loses(records: Records, method: str, what: str) -> str:
    runs = records.five(GIVEN, method)
    if not runs:
        return ""
    ends, lost = average(runs, "average_score"), average(runs, "forgetting")
    return f"{what} forgets {lost} and ends at {ends}."


MOST = 4


def lag(records: Records) -> str:
    """Return which tasks adapters lose most on, where both are chosen per task."""
    found = differences(records, scores, "adapter_per_task", "independent_per_task")
    if not found.size:
        return "Not run yet."
    run, means = records.five(GIVEN, "adapter_per_task")[0], found.mean(axis=1)
    by_task = dict(zip(run.titles, means, strict=True))
    worst = sorted(by_task, key=by_task.__getitem__)[:MOST]
    told = ", ".join(f"{title} ({percent(by_task[title])})" for title in worst)
    part = sum(by_task[title] for title in worst) / len(by_task)
    return (
        f"Chosen per task, adapters lose most on {told}: these {MOST} tasks make up "
        f"{percent(part)} of the mean of {percent(means.mean())} points. The median task is at "
        f"{percent(np.median(means))}."
    )


def verdicts(records: Records) -> str:
    """Return how many claims agree, are contradicted, and are open."""
    found = Counter(one.verdict for one in judged(records))
    agree, contradicted, still_open = (found[verdict] for verdict in Verdict)
    return (
        f"Of {count(sum(found.values()), 'claim')}, the records agree with {agree}, contradict "
        f"{contradicted} and leave {still_open} open."
    )
