"""The methods of docs/protocol.md: learners, what is fixed of them, what a search begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Values = tuple[float, ...]
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
    """

    name: str
    settings: tuple[str, ...]
    searched: dict[str, Values] = field(default_factory=dict, hash=False)
    isolated: bool = False
    head_of: str = ""
    choice: str = ""

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return self.settings[0].removeprefix("learner=")

    @property
    def fixed(self) -> dict[str, str]:
        """The learner's settings that are fixed, by field."""
        pairs = (text.partition("=") for text in self.settings[1:] if not self.choice)
        return {key.removeprefix("learner."): value for key, _, value in pairs}


def _apart(name: str, **searched: Values) -> Method:
    """Return a method that is a learner whose tasks share nothing."""
    return Method(name, (f"learner={name}",), searched, isolated=True)


def _along(name: str, **searched: Values) -> Method:
    """Return a method that is a learner whose tasks depend on each other."""
    return Method(name, (f"learner={name}",), searched)


def _after(name: str, **searched: Values) -> Method:
    """Return a method that is sequential fine-tuning and something more."""
    return Method(name, (f"learner={name}",), searched, head_of="finetune")


def _chosen(name: str, rates: str, head_of: str = "") -> Method:
    """Return a method whose rate is chosen for each task, from several starts."""
    choice = f"select={{lr: [{rates}], restarts: {RESTARTS}}}"
    given = (f"learner={name}", choice)
    return Method(f"{name}_per_task", given, isolated=True, choice=choice, head_of=head_of)


def _sized(learner: str, key: str, value: int, **searched: Values) -> Method:
    """Return a method that is a learner of another size, for the trade-off."""
    given = (f"learner={learner}", f"learner.{key}={value}")
    return Method(f"{learner}_{value}", given, searched, isolated=True)


HEADS = (1e-3, 3e-3)
WHOLE, SHARED = (3e-5, 1e-4, 3e-4), (1e-5, 3e-5, 1e-4)
LOW, MIDDLE, HIGH = (3e-4, 1e-3, 3e-3), (1e-3, 3e-3, 1e-2), (1e-2, 3e-2, 1e-1)
CORE = (
    _apart("adapter", lr=LOW),
    _apart("independent", lr=WHOLE, head_lr=HEADS),
    _along("finetune", lr=SHARED, head_lr=HEADS),
    _along("replay", lr=SHARED, head_lr=HEADS),
    _along("joint", lr=WHOLE, head_lr=HEADS),
    _along("shared_adapter", lr=(1e-4, 3e-4, 1e-3)),
    _apart("frozen", lr=HIGH),
    _apart("lora", lr=MIDDLE),
    _apart("layernorm", lr=MIDDLE),
    _apart("bitfit", lr=MIDDLE),
    _apart("topk", lr=(1e-4, 3e-4, 1e-3), head_lr=HEADS),
    _after("ewc", lr=SHARED, strength=(1e2, 1e3)),
    _after("lwf", lr=SHARED, strength=(1.0, 3.0)),
    _apart("majority"),
    _apart("tfidf"),
    _chosen("adapter", "3e-4, 1e-3, 3e-3"),
    _chosen("independent", "3e-5, 1e-4, 3e-4", head_of="independent"),
)
"""What the claims are about."""
CATALOGUE = (
    _apart("pfeiffer", lr=MIDDLE),
    _apart("bapna", lr=MIDDLE),
    _apart("parallel", lr=LOW),
    _apart("ia3", lr=(3e-3, 1e-2, 3e-2)),
    _apart("dora", lr=MIDDLE),
    _apart("prompt_tuning", lr=(3e-2, 1e-1, 3e-1)),
    _apart("prefix_tuning", lr=(3e-3, 1e-2, 3e-2)),
    _apart("lt_sft", lr=(1e-4, 3e-4, 1e-3), head_lr=HEADS),
    _apart("diff_pruning", lr=WHOLE, gate_lr=(0.1, 0.3)),
    _along("adapterfusion", lr=LOW),
    _along("stacked", lr=MIDDLE),
    _along("progressive", lr=(1e-4, 3e-4, 1e-3), head_lr=HEADS),
    _along("progressive_prompts", lr=HIGH),
    _after("agem", lr=SHARED),
    _after("gem", lr=SHARED),
    _after("er_ace", lr=SHARED),
    _after("derpp", lr=SHARED, alpha=(0.3, 1.0)),
    _after("si", lr=SHARED, strength=(0.03, 0.1)),
    _after("migu", lr=SHARED),
    _along("hat", lr=LOW),
    _along("l2p", lr=HIGH),
    _along("ogd", lr=LOW),
    _along("olora", lr=LOW),
    _along("pals", lr=WHOLE, head_lr=HEADS),
    _along("ewc_adapter", lr=LOW, strength=(1e2, 1e3)),
    _along("lwf_adapter", lr=LOW, strength=(1.0, 3.0)),
    _along("derpp_adapter", lr=LOW, alpha=(0.3, 1.0)),
    _along("prototype"),
    _along("ranpac"),
)
"""The other learners, and presets that are methods of their own."""
SIZES = (
    *(_sized("adapter", "size", size, lr=MIDDLE) for size in (2, 8)),
    *(_sized("adapter", "size", size, lr=(1e-4, 3e-4, 1e-3)) for size in (256, 512)),
    *(_sized("lora", "rank", rank, lr=MIDDLE) for rank in (1, 32)),
    *(_sized("topk", "layers", k, lr=(1e-4, 3e-4, 1e-3), head_lr=HEADS) for k in (2, 3, 4, 5)),
)
"""The trade-off between parameters and score, besides what is above."""
SECOND: Mapping[str, Method] = {
    method.learner: method
    for method in (
        Method(
            "finetune-2", ("learner=finetune",), {"lr": (1e-6, 3e-6, 1e-5), "head_lr": (3e-3, 1e-2)}
        ),
        Method("topk-2", ("learner=topk",), {"lr": LOW, "head_lr": (1e-4, 3e-4)}),
    )
}
"""Second searches, by the method whose first one ended at an edge; no methods of their own."""


def _changed(name: str, *settings: str, lr: str = "1e-3") -> Method:
    """Return adapters with settings that may keep their training from failing."""
    return Method(
        f"adapter_{name}", ("learner=adapter", f"learner.lr={lr}", *settings), isolated=True
    )


CHANGED: Mapping[str, Method] = {
    "nothing: the rate that the search chose, 0.001": _changed("as_chosen"),
    "half the rate, 0.0005": _changed("half_rate", lr="5e-4"),
    "warm-up over 30% of the steps, not 10%": _changed("long_warmup", "training.warmup=0.3"),
    "a text's vector is the mean of its tokens": _changed(
        "mean_of_tokens", "backbone.pooling=mean"
    ),
}
"""Adapters on MPNet as the search chose them, and with one thing changed, by what that is."""
METHODS = (*CORE, *CATALOGUE, *SIZES)
BY_NAME: Mapping[str, Method] = {method.name: method for method in METHODS}
