"""How much memory a step and an evaluation take: stored weights, gradient checkpointing, length.

Run on a GPU: python -m benchmarks.encoders.memory --out results/encoders

Encoders of known sizes with random weights learn one task of generated rows with adapters, in bf16,
eagerly. A case is a line of OUT/memory.jsonl, and what stands there is not done again; the table is
written by `benchmarks.encoders.table`. On a CPU (--device cpu) only the bytes of weights are known,
so give it small --shapes.
"""

import argparse
import copy
import gc
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.encoders.records import MEMORY, MIB, Case, Found, Measurement, cases_of
from benchmarks.lines import append_line
from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.config.source import FilesSource
from stream.config.task import TaskSpec
from stream.data.task import Split, Task
from stream.errors import UserError
from stream.evaluation.evaluate import logits_of
from stream.learners.adapter import Adapter
from stream.models.encoder import Encoder, load_encoder
from stream.models.task_model import TaskModel
from stream.run.setup import pick_device
from stream.training.loop import fit

SHAPES: dict[str, dict[str, Any]] = {
    "ModernBERT-base": {
        "model_type": "modernbert",
        "vocab_size": 50_368,
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "max_position_embeddings": 8192,
    },
    "Qwen3-0.6B": {
        "model_type": "qwen3",
        "vocab_size": 151_936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
    },
    "DeBERTa-v3-base": {
        "model_type": "deberta-v2",
        "vocab_size": 128_100,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "max_position_embeddings": 512,
        "type_vocab_size": 0,
        "relative_attention": True,
        "position_buckets": 256,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    },
    "tiny": {
        "model_type": "bert",
        "vocab_size": 1000,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 256,
    },
}
"""Those of the published encoders, and a small one to try this with."""
POOLING = {"qwen3": "last"}
STORAGES = ("float32", "bf16", "nf4")
LENGTHS = (128, 512, 2048, 8192)
STEPS = 4  # the first is not timed
VOCABULARY = 1000  # token ids that rows have


def made_task(rows: int, length: int) -> Task:
    """Return a task whose rows all have ``length`` random tokens."""
    spec = TaskSpec(
        title="generated rows",
        kind="single",
        labels=["0", "1"],
        score_range=None,
        metric="accuracy",
        source="made here",
        files=FilesSource(text=["text"]),
    )
    tokens = np.random.default_rng(0).integers(5, VOCABULARY, rows * length).astype(np.int32)
    offsets = np.arange(0, rows * length + 1, length, dtype=np.int64)
    split = Split(tokens, offsets, np.full(rows, length, np.int32), np.arange(rows) % 2)
    return Task("made", spec, {"train": split, "test": split}, {})


@cache
def drawn(name: str) -> Encoder:
    """Return an encoder of `SHAPES` with random weights, which are drawn once: it takes seconds."""
    shape = SHAPES[name]
    pooling = POOLING.get(shape["model_type"], "cls")
    backbone = BackboneConfig(name, "random", shape=shape, pooling=pooling)
    return load_encoder(backbone, vocabulary_size=shape["vocab_size"])


def built(case: Case) -> Encoder:
    """Return the encoder of a case."""
    encoder = copy.deepcopy(drawn(case.encoder))
    if case.checkpointing:
        encoder.checkpoint_layers()
    return encoder


def weight_bytes(model: TaskModel) -> int:
    """Return the bytes of the encoder's weights and of its bf16 copy's; what they share once."""
    copies = [model.encoder] if model.bf16_encoder is None else [model.encoder, model.bf16_encoder]
    tensors = chain.from_iterable(encoder.parameters() for encoder in copies)
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())


def measured(case: Case, device: torch.device) -> Found:
    """Learn a few steps and score a batch."""
    gc.collect()
    encoder = built(case)
    most, parameters = encoder.most_tokens, encoder.num_parameters()
    if most is not None and case.length > most:
        return Found(parameters=parameters, failed=f"positions for {most} tokens")
    task = made_task(case.rows * STEPS, case.length)
    learner = Adapter()
    model = TaskModel(encoder.to(device), 0, precision="bf16", storage=case.storage)
    learner.attach(model, tasks=[task], seed=0, pad_id=0)
    model.sync_bf16_copy()
    found = {"parameters": parameters, "weights": weight_bytes(model)}
    marks: list[float] = []

    def on_step(step: object) -> None:
        del step
        if device.type == "cuda":
            torch.cuda.synchronize()
        marks.append(time.perf_counter())

    training = TrainingConfig(epochs=1, min_steps=0, batch_size=case.rows)
    _forget_peak(device)
    fit(learner, task, training, on_step)
    learning = _peak(device)
    _forget_peak(device)
    logits_of(learner, [task], "test", case.rows * case.length, device)
    seconds = statistics.median(np.diff(marks).tolist())
    return Found(**found, learning=learning, scoring=_peak(device), step_s=seconds)


def _forget_peak(device: torch.device) -> None:
    """Begin to look for a peak anew."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak(device: torch.device) -> int | None:
    """Return the bytes at the peak; None where torch does not count them."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else None


def tried(case: Case, device: torch.device) -> Found:
    """Measure a case, or say why that cannot be."""
    try:
        return measured(case, device)
    except torch.OutOfMemoryError:
        return Found(failed="out of memory")
    except UserError as error:
        return Found(failed=str(error))


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for; what is not installed is named and left out."""
    storages = given.storages.split(",")
    if "nf4" in storages and find_spec("bitsandbytes") is None:
        print("left out, bitsandbytes is not installed: nf4", file=sys.stderr)
        storages.remove("nf4")
    for name in given.shapes.split(","):
        for length in map(int, given.lengths.split(",")):
            for storage in storages:
                for checkpointing in (False, True):
                    yield Case(
                        encoder=name,
                        storage=storage,
                        checkpointing=checkpointing,
                        length=length,
                        rows=given.rows,
                    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every case that has no line yet."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    published = ",".join(name for name in SHAPES if name != "tiny")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--shapes", default=published)
    parser.add_argument("--storages", default=",".join(STORAGES))
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--rows", type=int, default=8)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    device = pick_device(given.device)
    where = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    machine = f"{where}, torch {torch.__version__}, transformers {version('transformers')}"
    done = cases_of(given.out)
    for case in cases(given):
        if case in done:
            continue
        found = tried(case, device)
        append_line(given.out / MEMORY, Measurement(case=case, found=found, machine=machine))
        learning = "no peak" if found.learning is None else f"{found.learning / MIB:,.0f} MiB"
        print(f"{case}: {found.failed or learning}", flush=True)


if __name__ == "__main__":
    main()
