"""What docs/protocol.md plans: groups of runs, and which methods with which seeds, in order.

A group is a stream, an encoder and an order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.evidence import ablations
from benchmarks.evidence.methods import (
    BY_NAME,
    CATALOGUE,
    CHANGED,
    CORE,
    METHODS,
    SECOND,
    SIZES,
    Method,
)

SEEDS = (1, 2, 3, 4, 5)
MORE_SEEDS = (6, 7, 8, 9, 10)
"""Further seeds of `TEN_SEEDS`, and those of `CHANGED`."""
TEN_SEEDS = ("adapter", "independent")
TRIALS = 10
"""The most settings that a search tries of a method."""


@dataclass(frozen=True)
class Group:
    """Runs that differ in method and seed only.

    Attributes:
        name: of its folder.
        settings: of all its runs: stream, encoder, order.
        searches: the group whose searches chose the settings.
    """

    name: str
    settings: tuple[str, ...]
    searches: str


ROWS = ("stream=houlsby26", "backbone=minilm", "limits.train=4000")
ORDERS = {
    "reversed": ("order=reversed",),
    **{f"random{seed}": ("order=random", f"order_seed={seed}") for seed in (1, 2, 3)},
}
MINILM = Group("minilm", ROWS, "minilm")
OTHER_ORDERS = tuple(
    Group(f"minilm-{name}", (*ROWS, *order), "minilm") for name, order in ORDERS.items()
)
MPNET = Group("mpnet", ("stream=houlsby26", "backbone=mpnet_base", "limits.train=4000"), "mpnet")
FAILED_ON = (
    *("cola", "sst2", "mnli_matched", "mnli_mismatched", "qnli", "crowdflower_emotion"),
    *("crowdflower_political_message", "crowdflower_primary_emotions"),
)
FAILING = Group(
    "mpnet-failing",
    (f"task=[{','.join(FAILED_ON)}]", "backbone=mpnet_base", "limits.train=4000"),
    "mpnet",
)
"""The tasks on which training of adapters failed with some seed of `MPNET`."""
LONG = Group(
    "minilm-20000", ("stream=houlsby26", "backbone=minilm", "limits.train=20000"), "minilm-20000"
)
INFERRED = Group(
    "minilm-inferred", (*ROWS, "scenario=inferred", "router.kind=mahalanobis"), "minilm"
)
"""The task of a text is not given: a router infers it."""
COUNTED = Group(
    "minilm-operations",
    (
        *("stream=houlsby26", "backbone=minilm", "limits.train=256", "limits.eval=50"),
        *("training.epochs=1", "training.min_steps=1", "count_flops=true"),
    ),
    "minilm",
)
"""A short stream on which operations are counted, which the other runs do not: it takes time."""
ABLATED = Group(
    "minilm-ablations",
    (f"task=[{','.join(ablations.TASKS)}]", "backbone=minilm", "limits.train=4000"),
    "minilm",
)
"""A stream of four tasks, for the paper's ablations."""
LAGGING = (
    *("cola", "newsgroups20", "crowdflower_progressive_stance", "crowdflower_primary_emotions"),
)
LONGER = Group(
    "minilm-longer",
    (
        *(f"task=[{','.join(LAGGING)}]", "backbone=minilm", "limits.train=4000"),
        "training.epochs=20",
    ),
    "minilm",
)
"""The four tasks on which adapters lose most, with as many epochs as the paper tries, too."""
GROUPS = (MINILM, *OTHER_ORDERS, INFERRED, LONGER, MPNET, FAILING, LONG, COUNTED, ABLATED)
IN_OTHER_ORDERS = ("finetune", "replay", "ewc", "lwf", "shared_adapter", "adapter")
"""What is run in other orders; of what is isolated one method shows that they do not matter."""
ELSEWHERE = ("adapter", "independent", "finetune", "replay", "joint", "frozen", "shared_adapter")
"""What is run with another encoder, and with more rows."""
CHOSEN_PER_TASK = ("adapter_per_task", "independent_per_task")
"""What chooses its rate for each task."""
WITH_MPNET = (*ELSEWHERE, *CHOSEN_PER_TASK)

ALWAYS = (
    "data=files",
    "tracking=none",
    "figures=false",
    "evaluation.baseline=false",
)
REUSED = "evaluation.reuse=verify"
"""Has no effect where tasks are inferred, and is refused there."""
IN_SEARCHES = (
    "data=files",
    "tracking=none",
    "seed=0",
    "limits.seed=0",
    "limits.eval=500",
    "evaluation.split=validation",
    "evaluation.baseline=false",
    "evaluation.reuse=on",
    "checkpoint.enabled=false",
)


@dataclass(frozen=True)
class Job:
    """One run: its group, its method, its seed."""

    group: Group
    method: Method
    seed: int

    @property
    def name(self) -> str:
        """The folder of its record, below all records."""
        return f"{self.group.name}/{self.method.name}-s{self.seed}"

    def settings(self, chosen: dict[str, float]) -> list[str]:
        """Return what its command says after ``run_stream.py``, without where things are.

        Args:
            chosen: the values of what was searched.
        """
        values = [f"learner.{key}={value}" for key, value in chosen.items()]
        seeds = [f"seed={self.seed}", f"limits.seed={self.seed}"]
        needs_weights = self.is_verified or self.loses_layers
        kept = [] if needs_weights else ["checkpoint.enabled=false"]
        more = kept if self.group == INFERRED else [REUSED, *kept]
        return [*self.method.settings, *values, *self.group.settings, *seeds, *ALWAYS, *more]

    @property
    def is_verified(self) -> bool:
        """Whether its run folder is verified, so that it needs weights."""
        return self.group == MINILM and self.method.name == "adapter" and self.seed == SEEDS[0]

    @property
    def loses_layers(self) -> bool:
        """Whether it is scored without the adapters of every range of layers, from its weights."""
        return self.group == ABLATED and self.method == ablations.AS_CHOSEN


class Phase(NamedTuple):
    """Runs that are made one after another."""

    group: Group
    methods: Sequence[str]
    seeds: Sequence[int]


def _names(methods: Sequence[Method]) -> list[str]:
    return [method.name for method in methods]


PHASES = (
    Phase(MINILM, _names(CORE), SEEDS),
    Phase(MINILM, TEN_SEEDS, MORE_SEEDS),
    *(Phase(group, IN_OTHER_ORDERS, SEEDS[:1]) for group in OTHER_ORDERS),
    Phase(INFERRED, ("adapter",), SEEDS),
    Phase(LONGER, CHOSEN_PER_TASK, SEEDS),
    Phase(MINILM, _names(CATALOGUE), SEEDS),
    Phase(MPNET, WITH_MPNET, SEEDS),
    Phase(FAILING, _names([*CHANGED.values()]), MORE_SEEDS),
    Phase(MINILM, _names(SIZES), SEEDS),
    Phase(LONG, ELSEWHERE, SEEDS),
    Phase(COUNTED, [m.name for m in METHODS if m.searched or m.choice], SEEDS[:1]),
    Phase(ABLATED, _names(ablations.ONE_SETTING), SEEDS),
    Phase(ABLATED, _names(ablations.PER_TASK), SEEDS),
)
"""Everything, what the claims need most first."""
_METHODS = {
    **BY_NAME,
    **{method.name: method for method in (*ablations.ABLATIONS, *CHANGED.values())},
}


def jobs() -> Iterator[Job]:
    """Yield every run, in the order of the work; of each phase the longest first."""
    for group, names, seeds in PHASES:
        methods = sorted((_METHODS[name] for name in names), key=lambda method: not method.choice)
        yield from (Job(group, method, seed) for method in methods for seed in seeds)


def searched() -> Iterator[tuple[Group, list[Method]]]:
    """Yield the methods whose settings are searched together, in the order of the work.

    Second searches come last.
    """
    for group, names, _ in PHASES:
        methods = [_METHODS[name] for name in names if _METHODS[name].searched]
        if group.name == group.searches and methods:
            yield group, methods
    yield MINILM, [*SECOND.values()]


def with_settings(planned: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return settings of the plan and further ones, which take the place of those of their name."""
    names = {setting.partition("=")[0] for setting in more}
    return [*(s for s in planned if s.partition("=")[0] not in names), *more]
