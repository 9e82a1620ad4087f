"""The record of a run before its first task."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata

import torch

from stream.config.run import RunConfig
from stream.data.build import data_hash
from stream.data.prepare.leakage import Leak
from stream.data.task import Task
from stream.distributed.world import World
from stream.record.run_record import (
    CORE_METRICS,
    DataRecord,
    FlopRecord,
    LedgerRecord,
    LinearProbeRecord,
    MemoryRecord,
    ProbeRecord,
    RoutingRecord,
    RunRecord,
    TimingRecord,
)
from stream.run.settings import as_values

_PACKAGES = ("torch", "transformers", "numpy", "scipy", "scikit-learn", "hydra-core")


def new_record(
    config: RunConfig,
    data: DataRecord,
    tasks: Sequence[Task],
    ledger: LedgerRecord,
    device: torch.device,
    gpu: str | None,
) -> RunRecord:
    """Return the record of a run that has not learned anything yet.

    Args:
        config: the whole configuration.
        data: where the rows came from.
        tasks: the stream.
        ledger: the size of the pretrained encoder, without a row.
        device: where it is computed.
        gpu: the name of the GPU; None on a CPU.
    """
    names, probe = [task.name for task in tasks], config.probe
    return RunRecord(
        learner=config.learner.name,
        stream=config.stream_name,
        backbone=config.backbone.name,
        source=config.data.source,
        scenario=config.scenario,
        order=names,
        titles=[task.spec.title for task in tasks],
        metric_names=[task.spec.metric for task in tasks],
        labels={task.name: task.spec.labels for task in tasks},
        seed=config.seed,
        split=config.evaluation.split,
        device=str(device),
        gpu=gpu,
        matrix=[[None] * len(names) for _ in names],
        cells=[[None] * len(names) for _ in names],
        metrics=dict.fromkeys(CORE_METRICS),
        memory=MemoryRecord(promised=config.learner.tags.perfect_memory),
        ledger=ledger,
        timing=TimingRecord(),
        losses={},
        probe=None if probe.every is None else ProbeRecord(every=probe.every, rows=probe.rows),
        linear_probe=LinearProbeRecord() if config.evaluation.linear_probe else None,
        flops=FlopRecord() if config.count_flops else None,
        routing=RoutingRecord(kind=config.router.kind) if config.scenario == "inferred" else None,
        fingerprints={},
        data=data,
        versions=versions(),
        config=as_values(config),
        train_bytes=_train_bytes(tasks),
    )


def _train_bytes(tasks: Sequence[Task]) -> int | None:
    """Return the bytes of all training rows; None where tasks are served without their rows."""
    splits = [task.splits.get("train") for task in tasks]
    if any(split is None for split in splits):
        return None
    return sum(split.nbytes for split in splits if split is not None)


def data_record(source: str, tasks: Sequence[Task], leaks: Sequence[Leak]) -> DataRecord:
    """Return where the rows came from, how many there are, and their hashes.

    Args:
        source: the name of the source.
        tasks: the stream.
        leaks: held-out texts that were found in training rows.
    """
    return DataRecord(
        source=source,
        hash=data_hash(tasks),
        rows={t.name: {s: len(split) for s, split in t.splits.items()} for t in tasks},
        truncated={t.name: {s: split.truncated for s, split in t.splits.items()} for t in tasks},
        hashes={task.name: dict(task.hashes) for task in tasks},
        accounts={t.name: {s: asdict(a) for s, a in t.accounts.items()} for t in tasks},
        leaks=[asdict(leak) for leak in leaks],
    )


def versions() -> dict[str, str]:
    """Return the versions that scores may depend on."""
    threads = str(torch.get_num_threads())  # sums are split among them, so bits depend on it
    python, machine = platform.python_version(), platform.machine()
    found = {"python": python, **_installed(), "machine": machine, "threads": threads}
    world = World.now()  # gradients of slices are added in another order
    return found if world.alone else {**found, "ranks": str(world.size)}


@cache
def _installed() -> dict[str, str]:
    """Return the versions of packages; looking them up takes milliseconds."""
    return {name: metadata.version(name) for name in _PACKAGES}
