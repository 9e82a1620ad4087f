"""How much faster this CPU is with `ConvolvedLinear`.

Run: python -m benchmarks.speed.cpu_linear. Both ways are measured in turns in one process, on
batches of 32 random texts; ratios are what to read. Needs the packages of `make run`.
"""

import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from stream.models.onednn import convolve_linears

ROUNDS, BATCH = 7, 32


def encoder(*, convolved: bool) -> nn.Module:
    """Return an encoder of MiniLM's shape with random weights."""
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}
    model = BertModel(BertConfig(**shape, intermediate_size=1536))
    if convolved:
        convolve_linears(model)
    return model


def seconds(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def predict(model: nn.Module, ids: torch.Tensor) -> None:
    """Evaluate one batch."""
    model.eval()
    with torch.inference_mode():
        model(input_ids=ids)


def train(model: nn.Module, ids: torch.Tensor) -> None:
    """Make one forward and backward pass of full fine-tuning."""
    model.train()
    model.zero_grad()
    model(input_ids=ids).last_hidden_state[:, 0].square().mean().backward()


def main() -> None:
    """Print a table of medians and ratios."""
    print(
        f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, ", end=""
    )
    print(f"torch {torch.__version__}")
    models = [encoder(convolved=False), encoder(convolved=True)]
    for name, action in (("predict", predict), ("train", train)):
        for length in (16, 32, 64):
            ids = torch.randint(1000, 20000, (BATCH, length))
            times: list[list[float]] = [[], []]
            for _ in range(ROUNDS):
                for kept, model in zip(times, models, strict=True):
                    kept.append(seconds(lambda m=model, i=ids, a=action: a(m, i)))
            plain, convolved = (statistics.median(kept[1:]) for kept in times)
            print(
                f"{name:8} length {length:3}  linear {1e3 * plain:6.1f} ms  "
                f"convolved {1e3 * convolved:6.1f} ms  ratio {plain / convolved:.2f}"
            )


if __name__ == "__main__":
    main()
