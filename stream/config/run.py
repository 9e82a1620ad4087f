"""The shape and the defaults of a run, as plain dataclasses.

Treat the objects as read-only. (They cannot be frozen: Hydra composes into them.)
"""

import re
from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from stream.config.inputs import BackboneConfig, Limits, StreamConfig
from stream.config.task import TaskSpec
from stream.errors import choose, require, require_effect

LEAKS = ("drop", "warn", "error")
ORDERS = ("given", "reversed", "by_size", "random")
# None of these changes a score: they may differ between two parts of a run.
MAY_CHANGE = ("sweep", "tracking", "device", "cache", "checkpoint", "experiment", "resume", "probe")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass
class TrainingConfig:
    """The paper's schedule (Houlsby et al. 2019, sections 3.1-3.2), shared by all learners.

    Attributes:
        epochs: passes over a task's training rows.
        min_steps: small tasks get more whole epochs, until they have at least so many steps (the
            paper's Table 4 does the same by hand: 20 epochs for large sets, 100 for small ones).
        batch_size: rows of the new task in each step.
        warmup: fraction of the steps with a rising learning rate; it then falls linearly to 0.
        weight_decay: AdamW's, of weights; biases and LayerNorms have none.
        clip_norm: the largest norm of all gradients together.
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
        require_effect(self, "probe.rows", used=every is not None, otherwise="without probe.every")


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
        used = self.enabled or every is None
        require_effect(
            self, "checkpoint.every", used=used, otherwise="with checkpoint.enabled=false"
        )


@dataclass
class RunConfig:
    """Everything that decides a run.

    Attributes:
        learner, data, tracking, backbone: chosen by group (``learner=NAME``), each with its fields.
        stream: the list of tasks by its name; ``task``: the tasks themselves, in order.
        order: ``given``, ``reversed``, ``by_size`` (fewest training rows first) or ``random``.
        order_seed: what a random order is drawn with; null is 0.
        leaks: held-out texts found in training rows: ``drop`` them there, ``warn`` or ``error``.
        cache: folder of encoded tasks; null takes the user's cache.
        limits: rows of each task at most.
        seed: of first weights, batches, dropout and whatever else is drawn.
        device: ``auto``, or a name that torch knows, such as ``cpu`` or ``cuda:1``.
        count_flops: count floating-point operations; steps are then executed eagerly.
        experiment: the name of the experiment that chose these settings.
        sweep: the name of a multirun's folder; started again, it goes on.
        resume: the run folder to go on with, or ``auto``.
    """

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
        otherwise = f"with order={self.order}; use order=random"
        require_effect(self, "order_seed", used=self.order == "random", otherwise=otherwise)
        named = self.sweep is None or NAME.fullmatch(self.sweep) is not None
        require(named, f"sweep name {self.sweep!r} may hold letters, digits, '_' and '-' only")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")

    @property
    def stream_name(self) -> str:
        """The stream's name; ``custom`` where other tasks were chosen than it has."""
        return self.stream.name if list(self.task) == self.stream.tasks else "custom"
