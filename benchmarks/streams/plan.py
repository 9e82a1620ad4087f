"""What `benchmarks.streams` runs: protocol, learners with their searches, streams and orders."""

from collections.abc import Iterator
from dataclasses import dataclass

ENCODERS = ("minilm", "mpnet")
SEEDS = (1, 2, 3)
PROTOCOL = (
    "protocol=rows200",
    "limits.eval=300",
    "evaluation.baseline=false",
    "data=files",
    "tracking=none",
    "display=quiet",
)
"""200 rows a class as published for BERT-base; of test and validation rows at most 300 a task."""
STEPS = ("training.epochs=3", "training.min_steps=0")
"""Of methods that make steps."""
KEEPING_NOTHING = "checkpoint.enabled=false"  # 0.4 GB a run of a base-size encoder otherwise

ORDERS = {
    "cl5": ("published_1", "published_2", "published_3", "published_4"),
    "cl4": ("published_1", "published_2", "published_3"),
    "long15": ("published_4", "published_5", "published_6"),
    "clinc150": ("published_1",),
    "clinc150_15x10": ("given",),
    "houlsby26": ("given",),
}


@dataclass(frozen=True)
class Method:
    """A learner and what its search varies.

    Attributes:
        settings: what its command says.
        values: the values of ``key`` that the search tries first; none for a method that has
            nothing to choose. Where the best is at an end, up to two more beyond it are tried.
        key: the setting that is searched.
    """

    settings: str
    values: tuple[float, ...] = ()
    key: str = "learner.lr"

    @property
    def all_settings(self) -> list[str]:
        """What its command says, with the number of epochs where it has any."""
        return [*self.settings.split(), *(STEPS if self.values else ())]


SMALL = (5e-4, 1e-3, 2e-3, 4e-3)
WHOLE = (2e-5, 5e-5, 1e-4, 2e-4)
METHODS: dict[str, Method] = {
    "frozen": Method("learner=frozen", (3e-3, 1e-2, 3e-2, 1e-1)),
    "prototype": Method("learner=prototype learner.kind=ncm"),
    "prototype_ranpac": Method("learner=prototype learner.kind=ridge learner.projection=2000"),
    "adapter": Method("learner=adapter", SMALL),
    "lora": Method("learner=lora", SMALL),
    "progressive_prompts": Method("learner=progressive_prompts", (3e-3, 1e-2, 3e-2, 1e-1)),
    "independent": Method("learner=independent", WHOLE),
    "joint": Method("learner=joint", WHOLE),
    "finetune": Method("learner=finetune", WHOLE),
    "lwf": Method("learner=lwf", WHOLE),
    "replay": Method("learner=replay", WHOLE),
    "er_ace": Method("learner=er_ace", WHOLE),
    "olora": Method("learner=olora", SMALL),
}
"""A row of the tables each."""
ALONE = ("frozen", "prototype", "prototype_ranpac", "adapter", "lora", "independent")
"""Methods whose score of a task depends on that task alone: one run serves every stream, order."""
ANY_ORDER = ("joint",)
"""Methods that see all tasks of a stream at once."""
ONE_BY_ONE = ("finetune", "lwf", "replay", "olora", "progressive_prompts")
ONE_HEAD = ("finetune", "lwf", "replay", "er_ace", "prototype", "prototype_ranpac", "joint")
"""Methods of the tables with one head for the classes of all tasks."""
ROUTERS = ("class_mean", "mahalanobis")
SEARCHED_ON = (
    "task=[cb,rte,sst2,ag_news,yahoo_answers_topics]",
    "seed=0",
    "evaluation.split=validation",
)
"""Five of the fifteen tasks: pairs and single texts, small and large."""


@dataclass(frozen=True)
class Job:
    """Runs of one learner that differ in their seed.

    Attributes:
        encoder: one of `ENCODERS`.
        scenario: what is known when a text is served, with the router where there is one.
        stream: one of `ORDERS`.
        order: one of the stream's.
        method: one of `METHODS`.
    """

    encoder: str
    scenario: str
    stream: str
    order: str
    method: str

    @property
    def name(self) -> str:
        """The job in one word."""
        return "-".join((self.encoder, self.scenario, self.stream, self.order, self.method))

    @property
    def settings(self) -> list[str]:
        """What its commands say, without the seed, the value that was searched and places."""
        scenario, _, router = self.scenario.partition(":")
        chosen = [f"scenario={scenario}", *([f"router.kind={router}"] if router else [])]
        # The same bits are the same scores: where tasks are isolated, each is measured once.
        isolated = scenario == "known" and self.method in (*ALONE, "progressive_prompts")
        reuse = ["evaluation.reuse=on"] if isolated else []
        if self.stream == "houlsby26":
            chosen.append("limits.train=1000")
        else:
            chosen.append(f"order={self.order}")
        return [
            f"stream={self.stream}",
            *chosen,
            *METHODS[self.method].all_settings,
            *reuse,
            *PROTOCOL,
        ]


def jobs() -> Iterator[Job]:
    """Yield everything, what the tables need most first."""
    for encoder in ENCODERS:
        yield from (Job(encoder, "known", "long15", "published_4", method) for method in ALONE)
        for stream in ("cl5", "cl4", "long15"):
            first, *_ = ORDERS[stream]
            yield from (Job(encoder, "known", stream, first, method) for method in ANY_ORDER)
            for order in ORDERS[stream]:
                yield from (Job(encoder, "known", stream, order, m) for m in ONE_BY_ONE)
        yield from routed(encoder)
        yield from one_head(encoder)


def one_head(encoder: str) -> Iterator[Job]:
    """Yield the runs with one head for all classes."""
    streams = {"minilm": ("clinc150", "clinc150_15x10", "cl5"), "mpnet": ("clinc150_15x10",)}
    for stream in streams[encoder]:
        for method in ONE_HEAD:
            orders = ORDERS[stream][:1] if method in ANY_ORDER else ORDERS[stream]
            yield from (Job(encoder, "shared_head", stream, order, method) for order in orders)


def routed(encoder: str) -> Iterator[Job]:
    """Yield the runs in which the task is inferred."""
    for stream in ("cl5", "cl4", "long15", "clinc150", "houlsby26"):
        for router in ROUTERS:
            yield Job(encoder, f"inferred:{router}", stream, ORDERS[stream][0], "adapter")
