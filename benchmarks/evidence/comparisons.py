"""The differences that the claims of docs/protocol.md are about, all corrected together."""

from dataclasses import dataclass

from benchmarks.evidence.quantities import GIVEN, differences, forgotten, scores
from benchmarks.evidence.records import Records
from benchmarks.evidence.statistics import Effect, holm
from stream.formatting import MINUS, percent

SIGNIFICANT = 0.05
QUANTITIES = {"score at the end": scores, "forgetting": forgotten}


@dataclass(frozen=True)
class Comparison:
    """What is compared: a quantity of a method, with another method or with nothing.

    Attributes:
        quantity: one of `QUANTITIES`.
        method: the method.
        other: the one that is subtracted; empty for none.
    """

    quantity: str
    method: str
    other: str = ""

    def effect(self, records: Records, group: str = GIVEN) -> Effect | None:
        """Return what the records of a group say; None with fewer than two seeds."""
        quantity = QUANTITIES[self.quantity]
        found = differences(records, quantity, self.method, self.other, group)
        return Effect.of(found) if found.ndim == 2 and found.shape[1] > 1 else None


def _ends(method: str, other: str) -> Comparison:
    return Comparison("score at the end", method, other)


def _forgets(method: str, other: str = "") -> Comparison:
    return Comparison("forgetting", method, other)


PER_TASK = _ends("adapter_per_task", "independent_per_task")
ONE_SETTING = _ends("adapter", "independent")
FORGETS = _forgets("finetune")
BELOW_ADAPTERS = _ends("finetune", "adapter")
SHARED_FORGETS = _forgets("shared_adapter")
REPLAY_FORGETS = _forgets("replay", "finetune")
REMEDIES = {name: _ends(name, "finetune") for name in ("replay", "lwf", "ewc")}
PARTS = {name: _ends(name, "adapter") for name in ("layernorm", "bitfit", "topk")}
COMPARISONS = (
    PER_TASK,
    ONE_SETTING,
    FORGETS,
    BELOW_ADAPTERS,
    SHARED_FORGETS,
    REPLAY_FORGETS,
    *REMEDIES.values(),
    *PARTS.values(),
)


@dataclass(frozen=True)
class Found:
    """What the records say of a comparison.

    Attributes:
        effect: the difference.
        p: its p value, corrected by Holm's method for the number of `COMPARISONS`.
    """

    effect: Effect
    p: float

    @property
    def sign(self) -> int:
        """1 or -1 where the difference is significant, 0 where it is not."""
        if self.p >= SIGNIFICANT:
            return 0
        return 1 if self.effect.mean > 0 else -1


def compared(records: Records) -> dict[Comparison, Found]:
    """Return every comparison that can be made; those that cannot count as p = 1 in Holm's method.

    So what is found first cannot get smaller p values from what is missing.
    """
    effects = {comparison: comparison.effect(records) for comparison in COMPARISONS}
    corrected = holm([1.0 if effect is None else effect.p for effect in effects.values()])
    return {
        comparison: Found(effect, p)
        for (comparison, effect), p in zip(effects.items(), corrected, strict=True)
        if effect is not None
    }


def shown(effect: Effect) -> str:
    """Return a difference and its interval, in points."""
    return f"{points(effect.mean)} [{points(effect.low)}, {points(effect.high)}]"


def apart(effect: Effect, of: str) -> str:
    """Return how far above or below something a difference lies, with its interval, in words."""
    way = "below" if effect.mean < 0 else "above"
    bounds = f"{percent(effect.low)} to {percent(effect.high)}"
    distance = percent(abs(effect.mean))
    return f"{distance} points {way} {of} (95% interval over tasks and seeds: {bounds})"


def points(fraction: float) -> str:
    """Return a difference in points, finely enough to see on which side of a bound it lies.

    >>> points(0.0041), points(-0.00001)
    ('+0.41', '0.00')
    """
    text = f"{100 * fraction:+.2f}".replace("-", MINUS)
    return text if text.strip(f"+{MINUS}0.") else "0.00"


def p_value(p: float) -> str:
    """Return a p value as it is printed."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
