"""Workers: processes that learn the tasks of one run side by side, where tasks share nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stream.config.setting import Settings, at_least, setting
from stream.errors import require

if TYPE_CHECKING:
    from stream.config.run import RunConfig

ENGINES = ("processes", "ray")
MOST_WORKERS = 4096
SHORT_FORM = "workers"
"""``workers=4`` on the command line is ``workers.count=4``."""


@dataclass
class WorkersConfig(Settings):
    """How many tasks of a run are learned at once, and by what.

    Nothing here changes a score: a run with workers has the digests of one without them on the same
    kind of device with as many threads.

    Attributes:
        count: how many processes learn and score; 1 is the run's own process alone.
        engine: ``processes`` of this machine, or ``ray``, which also knows other machines.
        per_gpu: how many workers share a GPU; null spreads them over the GPUs there are.
        threads: threads with which each worker computes on a CPU; null shares out those that the
            run would have alone.
        address: the Ray cluster to join; null starts one on this machine.
    """

    GROUP: ClassVar[str] = "workers"

    count: int = setting(1, at_least(1, MOST_WORKERS))
    engine: str = setting("processes", ENGINES)
    per_gpu: int | None = setting(None, at_least(1, MOST_WORKERS))
    threads: int | None = setting(None, at_least(1, 1024))
    address: str | None = setting(None, needs={"engine": "ray"})

    @property
    def used(self) -> bool:
        """Whether there are workers besides the run's own process."""
        return self.count > 1

    def check(self, config: "RunConfig") -> None:
        """Check that the tasks of a run can be learned side by side.

        Raises:
            UserError: they cannot, and what to do instead.
        """
        if not self.used:
            return
        learner, given = config.learner, f"workers={self.count}"
        alone = learner.tags.parameter_isolation and not learner.tags.reads_past_tasks
        require(
            alone and not learner.tags.is_multitask,
            f"{given} needs a learner whose tasks share nothing that they learn; with "
            f"learner={learner.name}, a task goes on from what others left: leave workers out",
        )
        require(
            config.scenario == "known",
            f"{given} needs scenario=known: with scenario={config.scenario}, what serves a task "
            "depends on earlier ones; leave workers out",
        )
        require(
            config.probe.every is None,
            f"{given} and probe.every exclude each other: scores within a task are of all tasks "
            "so far; leave one of them out",
        )
        require(
            not config.evaluation.linear_probe,
            f"{given} and evaluation.linear_probe exclude each other: the probes are trained by "
            "one process; leave one of them out",
        )
