"""How many kernels a training step is, and how many steps are made in a second.

Run: python -m benchmarks.speed.kernels [--only NAME] [settings]. The real training loop learns one
task; every new width of a batch is measured by executing its step again and again. On a GPU the
step is captured, and torch's profiler counts the kernels of a replay; without one, operations are
counted. ``apart`` is the same program without what `Bf16Encoder` puts together and with the mask
converted in every layer. To compare with another version, copy this file into a work tree of it and
run it there with ``--only plain``.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.in_process import set_up
from benchmarks.speed.steps import now
from stream.data.batch import Batch
from stream.models import bf16, masks, precision
from stream.training.captured import Captured, Compute
from stream.training.engine import Eager
from stream.training.loop import fit

DEFAULTS = ("backbone.precision=bf16", "data=generated", "task=[sst2,ag_news]", "limits.train=400")
WAYS = ("plain", "apart")
REPEATS = {"cuda": 200, "cpu": 3}
PROFILED = 5
COPIES = ("Memcpy", "Memset")
FREE = {  # what makes no kernel of its own
    *("view", "_unsafe_view", "t", "transpose", "expand", "slice", "select", "unsqueeze"),
    *("squeeze", "detach", "as_strided", "permute", "alias", "split", "split_with_sizes"),
    *("empty", "empty_like", "empty_strided", "new_empty", "unbind", "_record_function_enter_new"),
    *("_record_function_exit", "_local_scalar_dense"),
}


class Row(NamedTuple):
    """A width, and what a step of it takes."""

    tokens: int
    kernels: Counter[str]
    busy: float  # seconds in which kernels of one step run; 0 where operations are counted
    seconds: float


class Operations(TorchDispatchMode):
    """Counts the operations that make kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        self.count[name] += name not in FREE
        return func(*args, **kwargs or {})


class Measuring:
    """An engine that measures the first step of every width. The engine it is mixed into steps."""

    rows: list[Row]

    def step(self, compute: Compute, batch: Batch) -> torch.Tensor:
        """Execute a step, and of a new width many."""
        super_step = super().step  # pyright: ignore[reportAttributeAccessIssue]
        loss = super_step(compute, batch)
        if all(batch.width != row.tokens for row in self.rows):
            again = partial(super_step, compute, batch)
            counted = _profiled(again) if batch.input_ids.is_cuda else (_counted(again), 0.0)
            self.rows.append(Row(batch.width, *counted, _seconds(again, batch.input_ids.device)))
        return loss


class MeasuringEager(Measuring, Eager):
    """Measured on a CPU."""


class MeasuringCaptured(Measuring, Captured):
    """Measured on a GPU."""


def _counted(again: partial[torch.Tensor]) -> Counter[str]:
    """Return the operations of a step."""
    with Operations() as operations:
        again()
    return +operations.count


def _profiled(again: partial[torch.Tensor]) -> tuple[Counter[str], float]:
    """Return the kernels of a step, and for how many seconds they run."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(PROFILED):
            again()
        torch.cuda.synchronize()
    events = [e for e in profiler.events() or () if e.device_type.name == "CUDA"]
    names = Counter(event.name for event in events)
    busy = sum(event.device_time for event in events) / PROFILED / 1e6
    return Counter({name: count // PROFILED for name, count in names.items()}), busy


def _seconds(again: partial[torch.Tensor], device: torch.device) -> float:
    """Return the time of a step."""
    started, repeats = now(device), REPEATS[device.type]
    for _ in range(repeats):
        again()
    return (now(device) - started) / repeats


@contextmanager
def way_of(name: str, *, on_gpu: bool) -> Iterator[None]:
    """Compute in one of the `WAYS` inside the block."""
    with ExitStack() as stack:
        if name == "apart" or not on_gpu:
            copy = partial(bf16.Bf16Encoder, together=name == "plain")
            stack.enter_context(patch.object(precision, "Bf16Encoder", copy))
            captured = lambda tensor: name == "plain"  # noqa: E731
            stack.enter_context(patch.object(masks, "captured", captured))
        yield


def measure(settings: Sequence[str], name: str) -> list[Row]:
    """Return what the steps of one way take, for every width that occurs."""
    run = set_up([*DEFAULTS, *settings])
    training, on_gpu = run.config.training, run.device.type == "cuda"
    engine = MeasuringCaptured(training.batch_size) if on_gpu else MeasuringEager()
    engine.rows = []
    with way_of(name, on_gpu=on_gpu):
        for task in run.tasks:
            fit(run.learner, task, training, engine=engine)
    return sorted(engine.rows, key=lambda row: row.tokens)


def print_rows(name: str, rows: Sequence[Row], most: int) -> None:
    """Print a line a width, and the most frequent kernels of the first one."""
    for row in rows:
        copies = sum(n for kernel, n in row.kernels.items() if kernel.startswith(COPIES))
        print(
            f"{name:<8}{row.tokens:>8}{sum(row.kernels.values()) - copies:>9}{copies:>8}"
            f"{row.busy * 1e3:>9.3f}{row.seconds * 1e3:>9.3f}{1 / row.seconds:>9.0f}"
        )
    for kernel, count in rows[0].kernels.most_common(most):
        print(f"{'':<8}{count:>8}  {kernel[:100]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--names", type=int, default=0, help="name so many kernels")
    parser.add_argument("settings", nargs="*", help="as for run_stream.py")
    given = parser.parse_args(arguments)
    print(
        f"{'way':<8}{'tokens':>8}{'kernels':>9}{'copies':>8}{'busy ms':>9}{'ms':>9}{'steps/s':>9}"
    )
    for name in WAYS if given.only is None else (given.only,):
        print_rows(name, measure(given.settings, name), given.names)


if __name__ == "__main__":
    main()
