"""Workers: processes that learn the tasks of one run side by side, where tasks share nothing."""

from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import Settings, at_least, setting

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
