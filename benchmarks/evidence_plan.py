"""What `benchmarks.evidence` runs: the learners side by side, their grids, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass

SMALL = (5e-4, 1e-3, 2e-3, 4e-3)
SHARED = (2e-5, 5e-5, 1e-4, 2e-4)
GRIDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "adapter64": ("learner=adapter learner.size=64", SMALL),
    "adapter8": ("learner=adapter learner.size=8", SMALL),
    "adapter256": ("learner=adapter learner.size=256", SMALL),
    "lora": ("learner=lora", SMALL),
    "finetune": ("learner=finetune", SHARED),
    "replay50": ("learner=replay learner.budget=50", SHARED),
    "replay500": ("learner=replay learner.budget=500", SHARED),
    "joint": ("learner=joint", SHARED),
    "independent": ("learner=independent", (5e-5, 1e-4, 2e-4, 4e-4)),
    "frozen": ("learner=frozen", (1e-3, 3e-3, 1e-2, 3e-2)),
    "shared_adapter": ("learner=shared_adapter", (3e-4, 1e-3, 2e-3, 4e-3)),
}
"""Every learner's settings, and the learning rates that its validation scores choose among."""

FIXED = {"lwf": "learner=lwf learner.strength=3.0"}
"""Learners whose settings another search chose (docs/methods.md)."""

TUNED_ON = (
    "cola,sst2,stsb,qnli,newsgroups20,crowdflower_airline,crowdflower_emotion,news_aggregator"
)
TUNING = (
    f"task=[{TUNED_ON}] limits.eval=500 evaluation.split=validation evaluation.baseline=false "
    "evaluation.reuse=on checkpoint.enabled=false"
)
TUNING_ROWS = {"minilm": 2000, "mpnet_base": 1000}
COMMON = "tracking=none data=files checkpoint.every=null"
GROUPS = {
    "given": "",
    "random": "order=random order_seed=1",
    "mpnet": "limits.train=4000",
    "again": "",
}
"""Runs of one stream that stand side by side, and the settings that all of a group share."""

ISOLATED = ("adapter64", "adapter8", "adapter256", "lora", "independent", "frozen")
SIZES = ("adapter8", "adapter64", "adapter256")
ON_MPNET = ("adapter64", "finetune", "independent", "replay50", "adapter8")
TRIED_ON_MPNET = ("adapter64", "independent")
MAIN = ("adapter64", "finetune", "replay50", "replay500", "independent", "joint")
SEQUENTIAL = ("finetune", "replay50", "replay500", "shared_adapter")


@dataclass(frozen=True)
class Job:
    """One run: its group, its learner's name in `GRIDS` or `FIXED`, its seed."""

    group: str
    learner: str
    seed: int

    @property
    def encoder(self) -> str:
        """The encoder's name."""
        return "mpnet_base" if self.group == "mpnet" else "minilm"

    @property
    def name(self) -> str:
        """The folder of the run, below its group's."""
        return f"{self.learner}-s{self.seed}"


def jobs() -> Iterator[Job]:
    """Yield every run, what the claim needs most first."""
    seeds = (1, 2, 3)
    for learner in (*MAIN, "shared_adapter", "frozen"):
        yield from (Job("given", learner, seed) for seed in seeds)
    yield from (Job("mpnet", learner, 1) for learner in ON_MPNET)
    for learner in ("adapter8", "adapter256"):
        yield from (Job("given", learner, seed) for seed in seeds)
    yield Job("again", "frozen", 1)
    for seed in seeds:
        yield from (Job("random", learner, seed) for learner in (*SEQUENTIAL, "adapter64"))
    for learner in ("lwf", "lora"):
        yield from (Job("given", learner, seed) for seed in seeds)


def trials() -> Iterator[tuple[str, str, float]]:
    """Yield (encoder, learner, learning rate) of the search, the slowest first."""
    for encoder, learners in (
        ("mpnet_base", TRIED_ON_MPNET),
        ("minilm", sorted(GRIDS, reverse=True)),
    ):
        for learner in learners:
            yield from ((encoder, learner, rate) for rate in GRIDS[learner][1])


def trial_settings(encoder: str, learner: str, rate: float) -> list[str]:
    """Return what the command of a trial says after ``run_stream.py``."""
    rows = f"limits.train={TUNING_ROWS[encoder]}"
    return f"{GRIDS[learner][0]} learner.lr={rate} seed=0 {rows} {TUNING} {COMMON}".split()


def settings(job: Job, rate: float | None) -> list[str]:
    """Return what a job's command says after ``run_stream.py``, without where things are."""
    learner = FIXED[job.learner] if rate is None else f"{GRIDS[job.learner][0]} learner.lr={rate}"
    # Every cell of the fixed-size adapters is measured; of other isolated ones the last row again.
    others = job.learner in ISOLATED and job.learner != "adapter64"
    reuse = "evaluation.reuse=verify" if others else ""
    return f"{learner} seed={job.seed} {GROUPS[job.group]} {reuse} {COMMON}".split()
