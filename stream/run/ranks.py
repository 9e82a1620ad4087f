"""What a run of several ranks needs: that it can be one, and that all of them are in the same."""

from stream.config.run import RunConfig
from stream.distributed.world import World
from stream.errors import require
from stream.run.interrupt import StopRequest
from stream.run.run import Run


def check_ranks(config: RunConfig, world: World) -> None:
    """Check that several ranks can share a run.

    Raises:
        UserError: they cannot, with what to do instead.
    """
    if world.alone:
        return
    learner, tags = config.learner.name, config.learner.tags
    told = f"torchrun started {world.size} processes, but "
    require(
        tags.makes_steps,
        f"{told}learner={learner} makes no training steps: run it without torchrun",
    )
    require(
        tags.reads_past_tasks or not tags.parameter_isolation,
        f"{told}tasks of learner={learner} are learned apart from each other: run it without "
        "torchrun, with workers=N",
    )
    require(
        tags.splits_batches,
        f"{told}learner={learner} looks at whole batches, which ranks only have slices of: run it "
        "without torchrun",
    )
    require(config.select is None, f"{told}select tries candidates one by one: leave it out")
    require(not config.count_flops, f"{told}count_flops=true counts those of one: leave it out")
    require(
        not config.workers.used,
        f"{told}workers={config.workers.count} starts processes too: leave one of them out",
    )
    require(
        ":" not in config.device,
        f"{told}device={config.device} is one GPU for all: leave it out, each takes its own",
    )


def check_same(run: Run) -> None:
    """Check that all ranks have read the same rows, with the same versions.

    Raises:
        UserError: they have not.
    """
    record = run.record
    first, *others = World.now().of_all((record.data.hash, record.versions))
    for rank, (data, versions) in enumerate(others, start=1):
        require(
            data == first[0], f"rank {rank} has other rows than the first: other files or cache"
        )
        differing = [
            f"{name} {first[1].get(name)}"
            for name in versions
            if versions[name] != first[1].get(name)
        ]
        require(not differing, f"rank {rank} has not what the first has: {', '.join(differing)}")


def stop_together(stop: StopRequest) -> None:
    """Have a request to stop hold for all ranks, where there are several."""
    if not (world := World.now()).alone:
        stop.among(world.most)
