"""How much faster several GPUs learn one task together than the first one does alone.

Run: torchrun --nproc-per-node=2 -m benchmarks.speed.ddp
An encoder of BERT-large's shape with random weights is fine-tuned, batches of 64 texts with 128
tokens, in bf16. First the first rank learns alone while the others wait, also from batches as small
as its slice will be, which is as fast as ranks could be if they had nothing to tell each other.
Then all learn the same batches, a slice each: so the ratios are of one run on one machine.
``--eager`` measures steps that are not captured too. ``--tiny`` takes a small encoder, to try it on
a CPU.
"""

import argparse
import gc
import math
from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.encoders.speed import machine
from benchmarks.encoders.ways import Clock
from benchmarks.speed.steps import now
from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.data.task import Split, Task
from stream.distributed.gradients import SharedGradients
from stream.distributed.launched import launched
from stream.distributed.slices import rows_each
from stream.distributed.world import World, joined_world
from stream.learners.finetune import Finetune
from stream.models.encoder import load_encoder
from stream.models.task_model import TaskModel
from stream.training.engine import pick_engine
from stream.training.loop import fit
from tests.builders import made_spec

BATCH, TOKENS, STEPS, VOCABULARY = 64, 128, 60, 30522
LARGE = {
    "model_type": "bert",
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
TINY = {**LARGE, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
MADE: dict[bool, dict[str, object]] = {False: LARGE, True: TINY}


def made_task(tokens: int) -> Task:
    """Return a task of random tokens, all texts equally long."""
    generator = np.random.default_rng(0)
    count = STEPS * BATCH
    ids = generator.integers(5, 1000, count * tokens, np.int32)
    lengths = np.full(count, tokens, np.int32)
    split = Split(ids, np.arange(count + 1) * tokens, lengths, generator.integers(0, 2, count))
    return Task("made", made_spec(), {"train": split}, {"train": "made"})


def rate(
    engine: str,
    world: World,
    device: torch.device,
    *,
    tiny: bool,
    batch: int = BATCH,
) -> tuple[float, float]:
    """Learn the task; return steps a second behind the first ones, and the last loss.

    Args:
        engine: how steps are executed.
        world: the ranks that learn.
        device: where this one does.
        tiny: take the small encoder.
        batch: rows of a batch; the first steps are measured, as many as whole batches give.
    """
    backbone = BackboneConfig("large", "random", shape=dict(MADE[tiny]))
    encoder = load_encoder(backbone, vocabulary_size=VOCABULARY, seed=0).to(device)
    model = TaskModel(encoder, 0, precision="bf16" if device.type == "cuda" else "float32")
    task, learner = made_task(16 if tiny else TOKENS), Finetune()
    learner.attach(model, tasks=[task], seed=0, pad_id=0)
    if not world.alone:
        model.gradients = SharedGradients(world.size)
    each = rows_each(batch, world.size)
    chosen = pick_engine(engine, learner, device, each, counting=False)
    clock = Clock(device, STEPS)
    training = TrainingConfig(epochs=1, min_steps=0, batch_size=batch)
    losses = fit(learner, task, training, clock.tick, engine=chosen).losses
    del learner, model, encoder, chosen
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return clock.rate, losses[-1]


def reduce_s(device: torch.device, numbers: int, dtype: torch.dtype) -> float:
    """Return the seconds that averaging so many numbers over ranks takes, the median of ten."""
    sharing, times = SharedGradients(World.now().size), []
    gradient = torch.nn.Parameter(torch.zeros(numbers, dtype=dtype, device=device))
    gradient.grad = torch.zeros_like(gradient)
    for _ in range(12):
        begun = now(device)
        sharing.finish([gradient])
        times.append(now(device) - begun)
    return sorted(times[2:])[5]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table on the first rank."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="a small encoder: to try it on a CPU")
    parser.add_argument("--alone", action="store_true", help="the first rank alone, and no more")
    parser.add_argument("--eager", action="store_true", help="steps that are not captured too")
    given = parser.parse_args(arguments)
    place, on_gpu = launched(), torch.cuda.is_available()
    device = torch.device("cuda", place.local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    engines = ("captured", "eager")[: 1 + given.eager] if on_gpu else ("eager",)
    alone: dict[str, tuple[float, float]] = {}
    if place.rank == 0:
        print(f"{machine()}; {place.size} ranks, batches of {BATCH}", flush=True)
        for engine in engines:
            alone[engine] = rate(engine, World(), device, tiny=given.tiny)
            slices = rows_each(BATCH, place.size)
            bound, _ = rate(engine, World(), device, tiny=given.tiny, batch=slices)
            print(
                f"one rank, {engine}: {alone[engine][0]:.2f} steps/s; batches of {slices}: "
                f"{bound:.2f}, {bound / alone[engine][0]:.2f} x",
                flush=True,
            )
    if place.alone or given.alone:
        return 0
    with joined_world(place) as world:
        together(alone, engines, world, device, tiny=given.tiny)
    return 0


def together(
    alone: dict[str, tuple[float, float]],
    engines: Sequence[str],
    world: World,
    device: torch.device,
    *,
    tiny: bool,
) -> None:
    """Measure what all ranks do together; the first prints it.

    Args:
        alone: what `rate` said of the first rank by engine; empty on the others.
        engines: how steps are executed.
        world: the ranks.
        device: where this one learns.
        tiny: take the small encoder.
    """
    for engine in engines:
        found, loss = rate(engine, world, device, tiny=tiny)
        if world.is_first:
            before, expected = alone[engine]
            best = max(speed for speed, _ in alone.values())
            print(
                f"{world.size} ranks, {engine}: {found:.2f} steps/s, "
                f"{found / before:.2f} x one rank, {found / best:.2f} x its faster engine; last "
                f"losses {expected:.4f} and {loss:.4f}",
                flush=True,
            )
    numbers = math.prod((24, 12, 1024, 1024)) + VOCABULARY * 1024
    for dtype in (torch.bfloat16, torch.float32) if device.type == "cuda" else ():
        taken = reduce_s(device, numbers, dtype)
        if world.is_first:
            print(f"averaging {numbers:,} numbers as {dtype}: {1000 * taken:.2f} ms")


if __name__ == "__main__":
    raise SystemExit(main())
