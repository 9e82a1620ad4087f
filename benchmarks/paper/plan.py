"""What `benchmarks.paper.evidence` runs: the learners, their grids, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass

SMALL = (5e-4, 1e-3, 2e-3, 4e-3)
SHARED = (2e-5, 5e-5, 1e-4, 2e-4)
GRIDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "adapter64": ("learner=adapter learner.size=64", SMALL),
    "adapter8": ("learner=adapter learner.size=8", (*SMALL, 8e-3, 1.6e-2)),
    "adapter256": ("learner=adapter learner.size=256", SMALL),
    "lora": ("learner=lora", SMALL),
    "finetune": ("learner=finetune", (5e-6, 1e-5, *SHARED)),
    "replay50": ("learner=replay learner.budget=50 learner.replayed=16", SHARED),
    "replay500": ("learner=replay learner.budget=500 learner.replayed=16", SHARED),
    "joint": ("learner=joint", SHARED),
    "independent": ("learner=independent", (5e-5, 1e-4, 2e-4, 4e-4)),
    "frozen": ("learner=frozen", (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)),
    "shared_adapter": ("learner=shared_adapter", (3e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3)),
}
"""Every learner's settings, and the learning rates that its validation scores choose among: four,
and two more beyond the end where the best of the four lay at one."""

FIXED = {"lwf": "learner=lwf learner.strength=3.0"}
"""Learners whose settings another search chose (docs/methods.md)."""

TUNED_ON = (
    "cola,sst2,stsb,qnli,newsgroups20,crowdflower_airline,crowdflower_emotion,news_aggregator"
)
TUNING = (
    "seed=0 evaluation.split=validation evaluation.baseline=false evaluation.reuse=on "
    "checkpoint.enabled=false"
)
ON_CPU = "limits.train=1600 limits.eval=200 training.epochs=1 device=cpu backbone.precision=bf16"
SEARCHES = {
    "minilm": f"limits.train=2000 limits.eval=500 task=[{TUNED_ON}]",
    "mpnet": f"limits.train=1000 limits.eval=500 task=[{TUNED_ON}]",
    "mpnet_short": f"{ON_CPU} task=[cola,crowdflower_airline,news_aggregator]",
}
"""What a search tries its rates on; the last two are the groups of jobs that they are for."""

COMMON = "tracking=none data=files checkpoint.every=null"
GROUPS = {
    "given": "",
    "random": "order=random order_seed=1",
    "mpnet": "limits.train=4000",
    "mpnet_short": f"{ON_CPU} evaluation.reuse=verify",
    "again": "",
}
"""Runs of one stream that stand side by side, and the settings that all of a group share."""

ISOLATED = ("adapter64", "adapter8", "adapter256", "lora", "independent", "frozen")
SIZES = ("adapter8", "adapter64", "adapter256")
TRIED_ON_MPNET = {
    "adapter64": SMALL,
    "finetune": (1e-5, 2e-5, 5e-5, 1e-4),
    "independent": SHARED,
    "replay50": SHARED,
    "adapter8": SMALL,
}
TRIED_ON_CPU = {
    "adapter64": (1e-3, 2e-3),
    "finetune": (2e-5, 5e-5),
    "independent": (5e-5, 1e-4),
}
MAIN = ("adapter64", "finetune", "replay50", "replay500", "independent", "joint")


@dataclass(frozen=True)
class Job:
    """One run: its group, its learner's name in `GRIDS` or `FIXED`, its seed."""

    group: str
    learner: str
    seed: int

    @property
    def search(self) -> str:
        """The search that chose its learning rate, one of `SEARCHES`."""
        return self.group if self.group in SEARCHES else "minilm"

    @property
    def name(self) -> str:
        """The folder of the run, below its group's."""
        return f"{self.learner}-s{self.seed}"


def jobs() -> Iterator[Job]:
    """Yield every run, what the claim needs most first."""
    seeds = (1, 2, 3)
    for learner in (*MAIN, "shared_adapter", "frozen"):
        yield from (Job("given", learner, seed) for seed in seeds)
    yield from (Job("mpnet", learner, 1) for learner in TRIED_ON_MPNET)
    yield from (Job("mpnet_short", learner, 1) for learner in TRIED_ON_CPU)
    for learner in ("adapter8", "adapter256"):
        yield from (Job("given", learner, seed) for seed in seeds)
    yield Job("again", "frozen", 1)
    for learner in ("lwf", "lora"):
        yield from (Job("given", learner, seed) for seed in seeds)
    for learner in ("adapter64", "finetune", "replay50", "shared_adapter", "replay500"):
        yield from (Job("random", learner, seed) for seed in seeds)


def trials() -> Iterator[tuple[str, str, float]]:
    """Yield (search, learner, learning rate), the slowest first."""
    everything = {learner: GRIDS[learner][1] for learner in sorted(GRIDS, reverse=True)}
    searches = {"mpnet_short": TRIED_ON_CPU, "mpnet": TRIED_ON_MPNET, "minilm": everything}
    for search, grids in searches.items():
        for learner, rates in grids.items():
            yield from ((search, learner, rate) for rate in rates)


def trial_settings(search: str, learner: str, rate: float) -> list[str]:
    """Return what the command of a trial says after ``run_stream.py``.

    Args:
        search: one of `SEARCHES`.
        learner: one of `GRIDS`.
        rate: its learning rate.
    """
    return f"{GRIDS[learner][0]} learner.lr={rate} {SEARCHES[search]} {TUNING} {COMMON}".split()


def settings(job: Job, rate: float | None) -> list[str]:
    """Return what a job's command says after ``run_stream.py``, without where things are."""
    learner = FIXED[job.learner] if rate is None else f"{GRIDS[job.learner][0]} learner.lr={rate}"
    # Every cell of adapters of size 64 is measured; of other isolated ones the last row again.
    others = job.learner in ISOLATED and job.learner != "adapter64"
    group = GROUPS[job.group]
    reuse = "evaluation.reuse=verify" if others and "evaluation.reuse" not in group else ""
    return f"{learner} seed={job.seed} {group} {reuse} {COMMON}".split()
