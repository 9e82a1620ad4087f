"""The claims of docs/protocol.md as code: what is measured, and the verdict that follows from it.

A claim has parts, each with a rule of its own. It is contradicted if one of them is, it agrees if
all do, and otherwise it is open.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean

from benchmarks.evidence import comparisons as c
from benchmarks.evidence.comparisons import p_value, shown
from benchmarks.evidence.plan import IN_OTHER_ORDERS, MORE_SEEDS, SEEDS
from benchmarks.evidence.quantities import (
    ENCODERS,
    GIVEN,
    IN_ORDERS,
    adapter_runs,
    digests,
    failed_pairs,
    in_orders,
    is_perfect,
    range_of,
)
from benchmarks.evidence.records import Records
from stream.formatting import MINUS, count, percent

WITHIN = (
    "One fixed setting of adapters is within 0.8 points of one fixed setting of full fine-tuning"
)


WITHIN_PER_TASK = (
    "Adapters, chosen per task, are within 0.4 points of full fine-tuning, chosen per task"
)


class Verdict(StrEnum):
    """What the records say of a claim."""

    AGREES = "agrees"
    CONTRADICTED = "contradicted"
    OPEN = "open"


@dataclass(frozen=True)
class Part:
    """One thing that a claim says.

    Attributes:
        found: what was measured, in words.
        verdict: what follows from it.
    """

    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Judged:
    """A claim with what was found of it."""

    claim: str
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole."""
        each = {part.verdict for part in self.parts}
        if Verdict.CONTRADICTED in each:
            return Verdict.CONTRADICTED
        return Verdict.AGREES if each == {Verdict.AGREES} else Verdict.OPEN


@dataclass(frozen=True)
class Evidence:
    """The records, and every comparison made from them."""

    records: Records
    compared: dict[c.Comparison, c.Found]

    @classmethod
    def of(cls, records: Records) -> "Evidence":
        """Compare."""
        return cls(records, c.compared(records))


NOT_RUN = Part("not run", Verdict.OPEN)
Rule = Callable[[Evidence], Iterator[Part]]


def either(agrees: bool, contradicted: bool) -> Verdict:  # noqa: FBT001
    """Return the verdict of a rule; neither is open."""
    assert not (agrees and contradicted)
    if agrees:
        return Verdict.AGREES
    return Verdict.CONTRADICTED if contradicted else Verdict.OPEN


def perfect_memory(evidence: Evidence) -> Iterator[Part]:
    """Judge whether every run of adapters forgot nothing, bit for bit."""
    perfect = [is_perfect(run) for run in adapter_runs(evidence.records)]
    if not perfect:
        yield NOT_RUN
        return
    found = f"{sum(perfect)} of {count(len(perfect), 'run')}"
    yield Part(found, either(all(perfect), not all(perfect)))


def within(comparison: c.Comparison, below: float) -> Rule:
    """Return the rule of a difference that may lie so many points below 0."""

    def rule(evidence: Evidence) -> Iterator[Part]:
        found = evidence.compared.get(comparison)
        if found is None:
            yield NOT_RUN
            return
        low, high = found.effect.low, found.effect.high
        yield Part(shown(found.effect), either(low > -below / 100, high < -below / 100))

    return rule


def few_parameters(evidence: Evidence) -> Iterator[Part]:
    """Judge what adapters train for a task and store in all; a few percent are less than 5."""
    runs = evidence.records.five(GIVEN, "adapter")
    if not runs:
        yield NOT_RUN
        return
    part = mean(row.trained_fraction for row in runs[0].ledger.tasks)
    total = runs[0].ledger.total_multiple or 0.0
    yield Part(f"{percent(part)}% of the encoder a task", either(part < 0.05, part >= 0.05))
    yield Part(f"{total:.2f} encoders in all", either(total < 2, total >= 2))


def sequential_forgets(evidence: Evidence) -> Iterator[Part]:
    """Judge whether fine-tuning forgets and ends below adapters."""
    forgets, ends = evidence.compared.get(c.FORGETS), evidence.compared.get(c.BELOW_ADAPTERS)
    if forgets is None or ends is None:
        yield NOT_RUN
        return
    effect = forgets.effect
    yield Part(f"forgetting: {shown(effect)}", either(effect.low > 0, effect.high < 0))
    close = ends.effect.low > -0.008
    yield Part(
        f"score at the end minus that of adapters {shown(ends.effect)}", either(not close, close)
    )


def isolation(evidence: Evidence) -> Iterator[Part]:
    """Judge whether adapters that all tasks share forget."""
    found = evidence.compared.get(c.SHARED_FORGETS)
    if found is None:
        yield NOT_RUN
        return
    verdict = either(found.sign > 0, found.effect.high <= 0)
    yield Part(
        f"forgetting of `shared_adapter` {shown(found.effect)}, p {p_value(found.p)}", verdict
    )


def directed(wanted: dict[c.Comparison, int]) -> Rule:
    """Return the rule of differences that have these signs, corrected by Holm's method."""

    def rule(evidence: Evidence) -> Iterator[Part]:
        for comparison, sign in wanted.items():
            found = evidence.compared.get(comparison)
            minus = f"`{comparison.method}` - `{comparison.other}`".replace("-", MINUS)
            name = f"{minus}, {comparison.quantity}"
            if found is None:
                yield Part(f"{name}: not run", Verdict.OPEN)
                continue
            verdict = either(found.sign == sign, found.sign == -sign)
            told = f"{name}: {shown(found.effect)}, p {p_value(found.p)}, {verdict}"
            yield Part(told, verdict)

    return rule


def order_matters(evidence: Evidence) -> Iterator[Part]:
    """Judge whether orders change shared encoders, and adapters not by a bit."""
    adapters = in_orders(evidence.records, "adapter")
    if len(adapters) < len(IN_ORDERS):
        yield Part(f"`adapter`: {count(len(adapters), 'order')} run", Verdict.OPEN)
    else:
        first, *others = map(digests, adapters)
        same = sum(first == other for other in others)
        told = f"`adapter`: logits of {same} of {len(others)} other orders are equal"
        yield Part(told, either(same == len(others), same < len(others)))
    for method in IN_OTHER_ORDERS:
        if method != "adapter":
            yield _shared_in_orders(evidence.records, method)


def _shared_in_orders(records: Records, method: str) -> Part:
    """Judge a method whose tasks share an encoder: orders against seeds, by the range of scores."""
    of_orders, of_seeds = in_orders(records, method), records.five(GIVEN, method)
    if len(of_orders) < len(IN_ORDERS) or len(of_seeds) < len(SEEDS):
        return Part(f"`{method}`: not run", Verdict.OPEN)
    orders, seeds = (
        range_of([run.metrics["average_score"] or 0.0 for run in runs])
        for runs in (of_orders, of_seeds)
    )
    told = f"`{method}`: {percent(orders)} over orders, {percent(seeds)} over seeds"
    return Part(told, either(orders > seeds, contradicted=False))


def none_fails(evidence: Evidence) -> Iterator[Part]:
    """Judge whether a task is at its majority answer that whole models learn, with each encoder."""
    for encoder, group in ENCODERS.items():
        runs = evidence.records.seeds(group, "adapter")
        if not runs or not evidence.records.seeds(group, "independent"):
            yield Part(f"{encoder}: not run", Verdict.OPEN)
            continue
        number, of = failed_pairs(evidence.records, group, "adapter")
        wanted = (*SEEDS, *MORE_SEEDS) if group == GIVEN else SEEDS
        told = f"{encoder}: {number} of {of} (task, seed) pairs"
        yield Part(told, either(len(runs) == len(wanted) and number == 0, number > 0))


CLAIMS: dict[str, Rule] = {
    "Adapters keep a perfect memory": perfect_memory,
    WITHIN_PER_TASK: within(c.PER_TASK, 0.4),
    WITHIN: within(c.ONE_SETTING, 0.8),
    "Adapters need a few percent of the parameters a task, and less than twice the encoder for 26 "
    "tasks": few_parameters,
    "Sequential fine-tuning forgets": sequential_forgets,
    "Isolation, not the adapter, removes forgetting": isolation,
    "Replay forgets less than fine-tuning and ends higher": directed(
        {c.REPLAY_FORGETS: -1, c.REMEDIES["replay"]: 1}
    ),
    "LwF, and EWC, end higher than fine-tuning": directed(
        {c.REMEDIES["lwf"]: 1, c.REMEDIES["ewc"]: 1}
    ),
    "The order matters to shared encoders, not to adapters": order_matters,
    "LayerNorms alone, biases alone, top layers alone are worse than adapters": directed(
        dict.fromkeys(c.PARTS.values(), -1)
    ),
    "No task fails with adapters that full fine-tuning learns": none_fails,
}


def judged(records: Records) -> list[Judged]:
    """Return every claim with its verdict."""
    evidence = Evidence.of(records)
    return [Judged(claim, tuple(rule(evidence))) for claim, rule in CLAIMS.items()]
