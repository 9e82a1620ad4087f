"""What docs/protocol.md plans: methods and what is searched of each, groups of runs, seeds.

A method is a learner with what is fixed of it. A group is a stream, an encoder and an order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Values = tuple[float, ...]
SEEDS = (1, 2, 3, 4, 5)
MORE_SEEDS = (6, 7, 8, 9, 10)
"""Further seeds of the methods of which ten are asked for."""
TRIALS = 10
"""The most settings that a search tries of a method."""
RESTARTS = 2
"""How often a candidate of the choice for each task starts anew."""


@dataclass(frozen=True)
class Method:
    """A learner with what is fixed of it.

    Attributes:
        name: in tables and folders.
        settings: of every run, without what is searched.
        searched: the values that its search begins with, by the learner's field.
        isolated: its tasks share nothing that they learn, so their order and the other tasks do not
            matter.
        head_of: the method whose rate of the heads it takes, so its search comes later.
        choice: what is tried for each task inside a run, instead of a search.
        ten_seeds: it gets `MORE_SEEDS` too.
    """

    name: str
    settings: tuple[str, ...]
    searched: dict[str, Values] = field(default_factory=dict)
    isolated: bool = False
    head_of: str = ""
    choice: str = ""
    ten_seeds: bool = False


def _method(name: str, isolated: bool = False, **searched: Values) -> Method:  # noqa: FBT001, FBT002
    """Return a method that is a learner with its defaults."""
    return Method(name, (f"learner={name}",), searched, isolated=isolated)


def _after(name: str, **searched: Values) -> Method:
    """Return a method that is sequential fine-tuning and something more."""
    return Method(name, (f"learner={name}",), searched, head_of="finetune")


def _chosen(name: str, rates: str) -> Method:
    """Return a method whose rate is chosen for each task, from several starts."""
    choice = f"select={{lr: [{rates}], restarts: {RESTARTS}}}"
    given = (f"learner={name}", choice)
    return Method(f"{name}_per_task", given, isolated=True, choice=choice)


HEADS = (1e-3, 3e-3)
WHOLE, SHARED = (3e-5, 1e-4, 3e-4), (1e-5, 3e-5, 1e-4)
METHODS = (
    Method(
        "adapter", ("learner=adapter",), {"lr": (3e-4, 1e-3, 3e-3)}, isolated=True, ten_seeds=True
    ),
    Method(
        "independent",
        ("learner=independent",),
        {"lr": WHOLE, "head_lr": HEADS},
        isolated=True,
        ten_seeds=True,
    ),
    _method("finetune", lr=SHARED, head_lr=HEADS),
    _method("replay", lr=SHARED, head_lr=HEADS),
    _method("joint", lr=WHOLE, head_lr=HEADS),
    _method("shared_adapter", lr=(1e-4, 3e-4, 1e-3)),
    _method("frozen", isolated=True, lr=(1e-2, 3e-2, 1e-1)),
    _method("lora", isolated=True, lr=(1e-3, 3e-3, 1e-2)),
    _method("layernorm", isolated=True, lr=(1e-3, 3e-3, 1e-2)),
    _method("bitfit", isolated=True, lr=(1e-3, 3e-3, 1e-2)),
    _method("topk", isolated=True, lr=(1e-4, 3e-4, 1e-3), head_lr=HEADS),
    _after("ewc", lr=SHARED, strength=(1e2, 1e3)),
    _after("lwf", lr=SHARED, strength=(1.0, 3.0)),
    _method("majority", isolated=True),
    _method("tfidf", isolated=True),
    _chosen("adapter", "3e-4, 1e-3, 3e-3"),
    _chosen("independent", "3e-5, 1e-4, 3e-4"),
)
BY_NAME = {method.name: method for method in METHODS}


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
GROUPS = (
    Group("minilm", ROWS, "minilm"),
    *(Group(f"minilm-{name}", (*ROWS, *order), "minilm") for name, order in ORDERS.items()),
)
COUNTED = Group(
    "minilm-operations",
    (
        *("stream=houlsby26", "backbone=minilm", "limits.train=256", "limits.eval=50"),
        *("training.epochs=1", "training.min_steps=1", "count_flops=true"),
    ),
    "minilm",
)
"""A short stream on which operations are counted, which the other runs do not: it takes time."""
IN_OTHER_ORDERS = ("finetune", "replay", "ewc", "lwf", "shared_adapter", "adapter")
"""What is run in other orders; of what is isolated one method shows that they do not matter."""

ALWAYS = (
    "data=files",
    "tracking=none",
    "figures=false",
    "evaluation.baseline=false",
    "evaluation.reuse=verify",
)
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
        kept = [] if self.is_verified else ["checkpoint.enabled=false"]
        return [*self.method.settings, *values, *self.group.settings, *seeds, *ALWAYS, *kept]

    @property
    def is_verified(self) -> bool:
        """Whether its run folder is verified, so that it needs weights."""
        return self.method.name == "adapter" and self.seed == SEEDS[0]


def jobs() -> Iterator[Job]:
    """Yield every run, what the claims need most first."""
    given, *others = GROUPS
    for method in METHODS:
        yield from (Job(given, method, seed) for seed in SEEDS)
    for method in (method for method in METHODS if method.ten_seeds):
        yield from (Job(given, method, seed) for seed in MORE_SEEDS)
    for group in others:
        yield from (Job(group, BY_NAME[name], SEEDS[0]) for name in IN_OTHER_ORDERS)
    with_steps = [method for method in METHODS if method.searched or method.choice]
    yield from (Job(COUNTED, method, SEEDS[0]) for method in with_steps)


def with_settings(planned: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return settings of the plan and further ones, which take the place of those of their name."""
    names = {setting.partition("=")[0] for setting in more}
    return [*(s for s in planned if s.partition("=")[0] not in names), *more]
