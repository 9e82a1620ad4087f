"""The claims of the paper's ablations in docs/protocol.md: what is found, and what follows."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from analysis.runs.estimate import Estimate
from benchmarks.evidence.ablation_quantities import (
    effect,
    lost_without,
    minus,
    scores_of,
    working_rates,
)
from benchmarks.evidence.ablations import AS_CHOSEN, BY_RATE, CHOSEN_STD, SIZES, STDS, TASKS, TOP
from benchmarks.evidence.comparisons import SIGNIFICANT, p_value, points, shown
from benchmarks.evidence.layers import named_range
from benchmarks.evidence.methods import Method
from benchmarks.evidence.plan import SEEDS
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect, holm
from benchmarks.evidence.verdicts import NOT_RUN, Judged, Part, either
from stream.formatting import MINUS, count

SMALL_STDS = tuple(STDS)[: tuple(STDS).index(CHOSEN_STD)]
LARGE_STDS = tuple(STDS)[tuple(STDS).index(CHOSEN_STD) + 1 :]
SAME = 0.01
"""How far scores may differ that count as the same."""
LITTLE = 0.02
"""What the adapters of a single layer may be worth, as in the paper."""
FEW = ("2", "8", "64")
"""Sizes of adapters that have fewer parameters than one layer."""
TOP_LAYER = TOP["1"]
LOWER_AND_UPPER = (((0, 2), (3, 5)), ((0, 1), (4, 5)))
"""Ranges of layers that are held against each other."""
Rule = Callable[[Records], Iterator[Part]]


def same_at_small_deviations(records: Records) -> Iterator[Part]:
    """Judge whether first weights that are smaller than usual give the same scores."""
    for std in SMALL_STDS:
        found = effect(minus(records, STDS[std], AS_CHOSEN))
        if found is None:
            yield Part(f"{std}: not run", NOT_RUN.verdict)
            continue
        inside = found.low > -SAME and found.high < SAME
        outside = found.high < -SAME or found.low > SAME
        yield Part(f"{std}: {shown(found)}", either(inside, outside))
    small = scores_of(records, [STDS[std] for std in (*SMALL_STDS, CHOSEN_STD)])
    if small.shape[-1] > 1:
        for task, by_seed in zip(TASKS, small[:-1].mean(axis=0) - small[-1], strict=True):
            low, high = Estimate.of(by_seed).interval or (np.nan, np.nan)
            title = TASKS[task].partition(",")[0]
            told = f"{title}: {points(by_seed.mean())} [{points(low)}, {points(high)}]"
            yield Part(told, either(low > -SAME, high < -SAME))


def worse_at_large_deviations(records: Records) -> Iterator[Part]:
    """Judge whether first weights that are larger than usual give lower scores."""
    pairs = {std: (STDS[std], AS_CHOSEN) for std in LARGE_STDS}
    yield from directed(records, pairs, sign=-1)


def one_layer_costs_little(records: Records) -> Iterator[Part]:
    """Judge what the adapters of each layer are worth by themselves."""
    lost = lost_without(records)
    if lost.shape[-1] < 2:
        yield NOT_RUN
        return
    for layer in range(len(lost)):
        found = Effect.of(lost[layer, layer])
        told = f"layer {layer}: {shown(found)}"
        yield Part(told, either(found.high < LITTLE, found.low > LITTLE))


def lower_layers_matter_less(records: Records) -> Iterator[Part]:
    """Judge lower layers against as many upper ones."""
    lost = lost_without(records)
    if lost.shape[-1] < 2:
        yield NOT_RUN
        return
    for lower, upper in LOWER_AND_UPPER:
        found = Effect.of(lost[lower] - lost[upper])
        names = named_range(*lower), named_range(*upper)
        told = "loss without {} minus that without {}: ".format(*names) + shown(found)
        yield Part(told, either(found.high < 0, found.low > 0))


def wider_range_of_rates(records: Records) -> Iterator[Part]:
    """Judge at how many rates each way of learning is close to its best."""
    adapter, whole = ([*methods.values()] for methods in BY_RATE.values())
    reached = scores_of(records, [*adapter, *whole])
    if reached.shape[-1] < 2:
        yield NOT_RUN
        return
    found, of_whole = map(working_rates, np.split(reached, 2))
    d = Effect.of(found - of_whole)
    bounds = f"{d.mean:+.2f} [{d.low:+.2f}, {d.high:+.2f}]".replace("-", MINUS)
    near = f"adapters {found.mean():.2f}, full fine-tuning {of_whole.mean():.2f}"
    near += f" of {count(len(adapter), 'rate')}"
    seeds = reached.shape[-1]
    few = "" if seeds == len(SEEDS) else f" ({count(seeds, 'seed')})"
    yield Part(f"{near}: {bounds}{few}", either(d.low > 0, d.high < 0))


def lose_less_than_top_layers(records: Records) -> Iterator[Part]:
    """Judge small adapters against the top layer, which has more parameters."""
    pairs = {f"adapters of {size}": (SIZES[size], TOP_LAYER) for size in FEW}
    yield from directed(records, pairs, sign=1)


def directed(
    records: Records, pairs: Mapping[str, tuple[Method, Method]], sign: int
) -> Iterator[Part]:
    """Judge whether differences have a sign, corrected together by Holm's method.

    Args:
        records: all of them.
        pairs: what is subtracted from what, by the name of the difference.
        sign: 1 or -1; those that cannot be computed yet count as p = 1.
    """
    found = {name: effect(minus(records, *pair)) for name, pair in pairs.items()}
    corrected = holm([1.0 if one is None else one.p for one in found.values()])
    for (name, one), p in zip(found.items(), corrected, strict=True):
        if one is None:
            yield Part(f"{name}: not run", NOT_RUN.verdict)
            continue
        clear = p < SIGNIFICANT
        verdict = either(clear and one.mean * sign > 0, clear and one.mean * sign < 0)
        yield Part(f"{name}: {shown(one)}, p {p_value(p)}", verdict)


CLAIMS: dict[str, Rule] = {
    "Scores do not depend on the first weights from 1e-7 to 1e-2": same_at_small_deviations,
    "Scores are worse above 1e-2": worse_at_large_deviations,
    "Removing the adapters of one layer costs at most 2 points": one_layer_costs_little,
    "Adapters of lower layers matter less than those of upper ones": lower_layers_matter_less,
    "Adapters work over a wider range of rates than full fine-tuning": wider_range_of_rates,
    "With few parameters, adapters lose less than top layers": lose_less_than_top_layers,
}


def judged(records: Records) -> list[Judged]:
    """Return every claim with its verdict."""
    return [Judged(claim, tuple(rule(records))) for claim, rule in CLAIMS.items()]
