"""How often the gradient of an embedding differs from the first, how exact it is, what it costs.

Run: python -m benchmarks.speed.embedding_gradients [--times N] [--seed N]. Texts of several widths
look up rows of a matrix of MiniLM's shape; the gradient is computed again and again, by torch's
kernel for that number of rows and with the rows that `stream.models.embeddings` adds. The error is
the largest against sums in float64.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from benchmarks.speed.steps import now
from stream.models.deterministic import deterministic
from stream.models.embeddings import NO_PADDING, not_few

ROWS, WIDTH, TEXTS = 30_522, 384, 32
FIRST_TOKEN = 101  # of every text, as in BERT's vocabulary
WIDTHS = (32, 33, 48, 63, 64, 80, 96, 97, 128)  # tokens of a text


class Tried(NamedTuple):
    """What came of computing a gradient many times.

    Attributes:
        differing: how often it was not the first one.
        error: the largest difference from exact sums.
        seconds: for one, the comparison included.
    """

    differing: int
    error: float
    seconds: float


def tried(compute: Callable[[], torch.Tensor], exact: torch.Tensor, times: int) -> Tried:
    """Compute a gradient again and again."""
    first = compute()
    differing = torch.zeros((), dtype=torch.long, device=first.device)
    start = now(first.device)
    for _ in range(times):
        differing += (compute() != first).any()
    seconds = (now(first.device) - start) / times
    return Tried(int(differing), float((first.double() - exact).abs().max()), seconds)


def gradient(rows: torch.Tensor, given: torch.Tensor, *, more: bool) -> torch.Tensor:
    """Return the gradient of the matrix, by torch alone or with rows added."""
    if more:
        rows, given = not_few(rows, given)
    with deterministic():
        return torch.ops.aten.embedding_dense_backward(
            given, rows, ROWS, NO_PADDING, scale_grad_by_freq=False
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each type and width."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    torch.manual_seed(asked.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"torch {torch.__version__} on {device}, {asked.times} times each", flush=True)
    for dtype in (torch.bfloat16, torch.float32):
        for width in WIDTHS:
            rows = torch.randint(0, ROWS, (TEXTS, width), device=device)
            rows[:, 0] = FIRST_TOKEN
            given = torch.randn(TEXTS, width, WIDTH, device=device, dtype=dtype)
            exact = torch.zeros(ROWS, WIDTH, device=device, dtype=torch.float64)
            exact.index_put_((rows.flatten(),), given.flatten(0, 1).double(), accumulate=True)
            for more in (False, True):
                found = tried(partial(gradient, rows, given, more=more), exact, asked.times)
                print(
                    f"{str(dtype)[6:]:>8} {rows.numel():5,} rows, {'ours' if more else 'torch':5}: "
                    f"{found.differing} differ, error {found.error:.1e}, "
                    f"{found.seconds * 1e6:,.0f} µs",
                    flush=True,
                )


if __name__ == "__main__":
    main()
