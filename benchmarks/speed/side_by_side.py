"""Whether it pays to train the adapters of K tasks at once over one frozen encoder.

Run: python -m benchmarks.speed.side_by_side [settings]; on a GPU steps are captured and replayed.
Made-up token ids; K batches of 32 rows go through the encoder together, each task with adapters,
LayerNorms and a head of its own (torch.func: grouped products where parameters differ by task),
against K steps of one task, and against K times the rows through the adapters of one task, which no
way to group them can beat. ``mixed`` has eight tasks with batches of different widths, which side
by side all get the widest one's.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from benchmarks.in_process import set_up

BATCH, OUTPUTS = 32, 32
MIXED = (16, 16, 32, 32, 48, 48, 64, 128)
Tensors = dict[str, torch.Tensor]


class Bench:
    """Steps of one shape, on one encoder."""

    def __init__(self, settings: Sequence[str]):
        run = set_up(["task=[sst2]", "limits.train=64", *settings])
        learner, self._device = run.learner, run.device
        learner.start(run.tasks[0])
        encoder = learner.model.encoder.train()
        if self._device.type == "cuda":
            encoder.to(torch.bfloat16)
        self._body: Any = encoder.body
        named = dict(self._body.named_parameters())
        self._own = {n: p.detach() for n, p in named.items() if p.requires_grad}
        self._frozen = {n: p.detach() for n, p in named.items() if not p.requires_grad}
        self._width = encoder.width

    def _loss(self, own: Tensors, head: torch.Tensor, batch: Tensors) -> torch.Tensor:
        """Return the loss of one task's batch."""
        mask = batch["mask"][:, None, None, :]
        inputs = {"input_ids": batch["ids"], "attention_mask": mask}
        output: Any = functional_call(self._body, {**self._frozen, **own}, (), inputs)
        features = functional.dropout(output.last_hidden_state[:, 0].float(), 0.1)
        return functional.cross_entropy(features @ head, batch["labels"])

    def step(self, tasks: int, rows: int, width: int) -> Callable[[], None]:
        """Return a step: loss, gradients, Adam.

        Args:
            tasks: how many tasks learn in it.
            rows: the batch of each.
            width: tokens per row.
        """
        shape, device = (tasks, rows, width), self._device
        batch = {
            "ids": torch.randint(5, 1000, shape, device=device),
            "mask": torch.ones(shape, dtype=torch.bool, device=device),
            "labels": torch.randint(0, 2, shape[:2], device=device),
        }
        batch["mask"][..., -3:] = False
        own = {n: p[None].repeat(tasks, *[1] * p.ndim) for n, p in self._own.items()}
        head = torch.randn(tasks, self._width, OUTPUTS, device=device) * 0.02
        gradient: Any = grad(self._loss, argnums=(0, 1))
        if tasks > 1:
            gradient = vmap(gradient, randomness="different")
        else:
            own, head = {n: p[0] for n, p in own.items()}, head[0]
            batch = {name: tensor[0] for name, tensor in batch.items()}
        learned = [*own.values(), head]
        moments = [[torch.zeros_like(p, dtype=torch.float32) for p in learned] for _ in "12"]

        def step() -> None:
            of_own, of_head = gradient(own, head, batch)
            _adam(learned, [g.float() for g in (*of_own.values(), of_head)], *moments)

        return step

    def seconds(self, step: Callable[[], None], repeats: int = 20) -> float:
        """Return the time of one step, replayed where there is a GPU."""
        if self._device.type != "cuda":
            step()
            started = time.perf_counter()
            step()
            return time.perf_counter() - started
        with torch.cuda.stream(torch.cuda.Stream()):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(repeats):
            graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / repeats


def _adam(
    learned: list[torch.Tensor],
    gradients: list[torch.Tensor],
    first: list[torch.Tensor],
    second: list[torch.Tensor],
) -> None:
    """Update parameters by Adam's rule without bias correction: as much work as AdamW.

    Args:
        learned: the parameters.
        gradients: one for each.
        first: first moments, updated.
        second: second moments, updated.
    """
    each: Any = torch  # its foreach functions are not in the stubs
    each._foreach_lerp_(first, gradients, 0.1)
    each._foreach_mul_(second, 0.999)
    each._foreach_addcmul_(second, gradients, gradients, 0.001)
    steps = each._foreach_div(first, each._foreach_add(each._foreach_sqrt(second), 1e-6))
    each._foreach_mul_(steps, -1e-4)
    each._foreach_add_(learned, [s.to(p.dtype) for s, p in zip(steps, learned, strict=True)])


def main(settings: Sequence[str]) -> None:
    """Print the table."""
    bench = Bench(settings)
    alone = {width: bench.seconds(bench.step(1, BATCH, width)) for width in sorted(set(MIXED))}
    print(
        f"{'tokens':>8}{'tasks':>7}{'one by one':>13}{'side by side':>14}{'ratio':>8}{'bound':>8}"
    )
    cases = [((width,) * count, str(width)) for width in (16, 64) for count in (4, 8)]
    for widths, name in [*cases, (MIXED, "mixed")]:
        count = len(widths)
        apart = sum(alone[width] for width in widths)
        together = bench.seconds(bench.step(count, BATCH, max(widths)))
        bound = bench.seconds(bench.step(1, count * BATCH, max(widths)))
        print(
            f"{name:>8}{count:>7}{apart * 1e3:10.2f} ms{together * 1e3:11.2f} ms"
            f"{apart / together:8.2f}{apart / bound:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
