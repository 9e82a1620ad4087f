"""An encoder of random weights, learned by this program or by Trainer with peft: steps a second.

Both learn LoRA of rank 8 on queries and values, and a head, with the same rows of equal length.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.encoders.plan import BATCH, TOKENS
from benchmarks.speed.rivals import trainer_of, with_lora
from stream.config.backbone import BackboneConfig
from stream.config.run import TrainingConfig
from stream.data.task import Split, Task
from stream.learners.lora import Lora
from stream.models.encoder import load_encoder
from stream.models.families.family import Family, FusedMap
from stream.models.pretrained import load_body
from stream.models.task_model import TaskModel
from stream.training.engine import pick_engine
from stream.training.loop import fit
from tests.builders import made_spec
from tests.models.tiny_families import POOLING
from tests.training.captured import refusals

WARM = 10
"""Steps that are not measured."""


@dataclass(frozen=True)
class Work:
    """What is learned: an encoder's configuration, on a device, so many steps."""

    shape: Mapping[str, Any]
    device: torch.device
    steps: int = 3 * WARM
    tokens: int = TOKENS

    @property
    def backbone(self) -> BackboneConfig:
        """The settings of the encoder."""
        pooling = POOLING[self.shape["model_type"]]
        return BackboneConfig("size", "random", shape={**self.shape}, pooling=pooling)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return token ids [N, tokens] and labels [N], as many as the steps need."""
        generator = np.random.default_rng(0)
        count = self.steps * BATCH
        ids = generator.integers(5, 50, (count, self.tokens), np.int32)
        return ids, generator.integers(0, 2, count)


@dataclass
class Clock:
    """Measures the steps behind the first ones."""

    device: torch.device
    steps: int
    done: int = 0
    times: list[float] = field(default_factory=list)

    def tick(self, *_: object) -> None:
        """Note that a step was started."""
        self.done += 1
        if self.done in (WARM, self.steps):
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            self.times.append(time.perf_counter())

    @property
    def rate(self) -> float:
        """Steps a second."""
        begun, ended = self.times
        return (self.steps - WARM) / (ended - begun)


def ours(engine: str, work: Work) -> dict[str, Any]:
    """Learn with this program; return what `Measured` says of it."""
    device, vocabulary = work.device, work.shape["vocab_size"]
    with device:  # random numbers are drawn where they are needed
        encoder = load_encoder(work.backbone, vocabulary_size=vocabulary)
    ids, labels = work.rows()
    lengths = np.full(len(ids), work.tokens)
    offsets = np.arange(len(ids) + 1) * work.tokens
    split = Split(ids.reshape(-1), offsets, lengths.astype(np.int32), labels)
    task = Task("made", made_spec(), {"train": split}, {"train": "made"})
    learner = Lora()
    precision = "bf16" if device.type == "cuda" else "float32"
    model = TaskModel(encoder.to(device), 0, precision=precision)
    padding = work.shape.get("pad_token_id", 0)
    learner.attach(model, tasks=[task], seed=0, pad_id=padding)
    chosen = pick_engine(engine, learner, device, BATCH, counting=False)
    clock = Clock(device, work.steps)
    training = TrainingConfig(epochs=1, min_steps=0, batch_size=BATCH)
    reset_peak(device)
    with refusals() as said:
        fit(learner, task, training, clock.tick, engine=chosen)
    parameters = encoder.num_parameters() - sum(
        p.numel() for name, p in encoder.named_parameters() if name not in encoder.pretrained
    )
    return {"parameters": parameters, "refusal": " ".join(said), **numbers(clock)}


class Classifier(nn.Module):
    """transformers' encoder and a linear head, as its own models for classification."""

    def __init__(self, body: nn.Module, pooling: str):
        super().__init__()
        self.body, self.pooling = body, pooling
        config: Any = body.config
        self.head = nn.Linear(config.hidden_size, 2)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return loss and logits of a batch whose rows are of equal length."""
        hidden = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        texts = {"cls": hidden[:, 0], "last": hidden[:, -1], "mean": hidden.mean(1)}[self.pooling]
        logits = self.head(texts)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def theirs(work: Work) -> dict[str, Any]:
    """Learn with Trainer and peft; return what `Measured` says of it."""
    from transformers import Trainer, TrainerCallback, default_data_collator

    with work.device:
        body, family = load_body(work.backbone, work.shape["vocab_size"], 0)
        config: Any = body.config
        config.use_cache = False  # of decoders; nothing is generated
        model = Classifier(body, work.backbone.pooling)
    model = with_lora(model, query_and_value(family), modules_to_save=["head"])
    clock = Clock(work.device, work.steps)

    class Ticks(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.tick()

    mask = torch.ones(work.tokens, dtype=torch.long)
    rows = [
        {"input_ids": torch.from_numpy(row).long(), "attention_mask": mask, "labels": int(label)}
        for row, label in zip(*work.rows(), strict=True)
    ]
    reset_peak(work.device)
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(Trainer, model, rows, 1, folder, default_data_collator)
        trainer.add_callback(Ticks())
        trainer.train()
    return numbers(clock)


def query_and_value(family: Family) -> list[str]:
    """Return the paths of the maps that make queries and values; of a fused one the whole."""
    paths = (family.query, family.value)
    return sorted({path.map if isinstance(path, FusedMap) else path for path in paths})


def reset_peak(device: torch.device) -> None:
    """Count memory from now on."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def numbers(clock: Clock) -> dict[str, float | None]:
    """Return the rate and the memory of what was just learned."""
    on_gpu = clock.device.type == "cuda"
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else None
    return {"steps_per_s": clock.rate, "peak_mib": peak}


WAYS: Mapping[str, Callable[[Work], dict[str, Any]]] = {
    "captured": lambda work: ours("captured", work),
    "eager": lambda work: ours("eager", work),
    "Trainer + peft": theirs,
}
"""How an encoder is learned."""
