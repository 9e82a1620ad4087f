"""Settings: everything that decides a run, with the defaults.

Treat the objects as read-only. (They cannot be frozen, because Hydra composes into them.)
"""

import re
from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from stream.config.backbone import BackboneConfig
from stream.config.data import Limits, StreamConfig
from stream.config.task import TaskSpec
from stream.errors import choose, require, require_effect

LEAKS = ("drop", "warn", "error")
ORDERS = ("given", "reversed", "by_size", "random")
# Settings that change no score, so a run may be resumed with other values of them.
SCORE_NEUTRAL = (
    "sweep",
    "tracking",
    "device",
    "cache",
    "checkpoint",
    "experiment",
    "resume",
    "probe",
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass
class TrainingConfig:
    """The training schedule (Houlsby et al. 2019, sections 3.1-3.2), the same for all learners.

    Attributes:
        epochs: passes over a task's training examples.
        min_steps: small tasks get more whole epochs until they have at least this many steps (the
            paper's Table 4 does this by hand: 20 epochs for large data sets, 100 for small ones).
        batch_size: examples of the new task per step.
        warmup: the fraction of the steps in which the learning rate rises; then it falls linearly
            to 0.
        weight_decay: AdamW's weight decay; biases and LayerNorms have none.
        clip_norm: gradients are scaled down so that their common norm is at most this.
        engine: how a step is executed: ``eager``, ``captured`` (as a CUDA graph) or ``auto``.
    """

    epochs: int = 3
    min_steps: int = 48
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    engine: str = "auto"

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless each one is within its range."""
        choose("training.engine", self.engine, ("auto", "eager", "captured"))
        least_of = {"epochs": 1, "min_steps": 0, "batch_size": 1, "weight_decay": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            require(value >= least, f"training.{name} must be at least {least}, got {value}")
        require(0 <= self.warmup < 1, f"training.warmup must be in [0, 1), got {self.warmup}")
        require(self.clip_norm > 0, f"training.clip_norm must be positive, got {self.clip_norm}")


@dataclass
class EvaluationConfig:
    """How the score matrix is filled.

    Attributes:
        split: ``test`` for results, ``validation`` for choosing hyperparameters.
        reuse: ``off`` measures every cell; ``on`` reuses a task's last cell if the fingerprint of
            everything that serves the task is unchanged; ``verify`` does so too, but measures the
            whole last row.
        baseline: also score the untrained learner on every task.
        unseen: after every task, also score the tasks that are not learned yet (forward transfer).
        batch_tokens: the largest number of padded tokens per batch; it is fixed, so that the
            shapes of a task's batches never change. Null is 2048 on a CPU and 65536 on a GPU.
    """

    split: str = "test"
    reuse: str = "off"
    baseline: bool = True
    unseen: bool = False
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises UserError unless each one is a valid choice."""
        choose("evaluation.split", self.split, ("test", "validation"))
        choose("evaluation.reuse", self.reuse, ("off", "verify", "on"))
        require(
            self.batch_tokens is None or self.batch_tokens >= 512,
            f"evaluation.batch_tokens must be at least 512, got {self.batch_tokens}",
        )


@dataclass
class ProbeConfig:
    """Scores that are measured while a task is learned.

    Attributes:
        every: the number of training steps between two measurements; null measures none.
        rows: how many examples of each task so far are used.
    """

    every: int | None = None
    rows: int = 64

    def __post_init__(self) -> None:
        """Check the values.

        Raises UserError unless ``every`` is at least 1 or null and ``rows`` is at least 2, and if
        ``rows`` is set without ``every``.
        """
        every = self.every
        require(every is None or every >= 1, f"probe.every must be at least 1, got {every}")
        require(self.rows >= 2, f"probe.rows must be at least 2, got {self.rows}")
        require_effect(self, "probe.rows", used=every is not None, otherwise="without probe.every")


@dataclass
class CheckpointConfig:
    """When a run is saved, so that it can be resumed.

    Attributes:
        every: the number of training steps between checkpoints within a task; null saves only
            after whole tasks.
        enabled: false writes no checkpoint at all.
    """

    every: int | None = 500
    enabled: bool = True

    def __post_init__(self) -> None:
        """Check the values.

        Raises UserError unless ``every`` is at least 1 or null, and if it is set although
        checkpoints are disabled.
        """
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
        learner: the method, chosen with ``learner=NAME``; its fields are the hyperparameters.
        data: the source of the rows, chosen with ``data=NAME``.
        tracking: the experiment tracker, chosen with ``tracking=NAME``.
        backbone: the pretrained encoder, chosen with ``backbone=NAME``.
        stream: the named list of tasks, chosen with ``stream=NAME``.
        task: the tasks themselves by name, in order.
        order: the order of the tasks: ``given``, ``reversed``, ``by_size`` (fewest training
            examples first) or ``random``.
        order_seed: the seed of a random order; null is 0.
        leaks: what to do with held-out texts in training rows: ``drop`` the training rows,
            ``warn``, or stop with an ``error``.
        cache: the folder for downloaded data and encoded tasks; null is the user's cache folder.
        limits: the largest number of rows of each task.
        training: the training schedule.
        evaluation: how the score matrix is filled.
        probe: scores within a task.
        checkpoint: when the run is saved.
        seed: the seed of first weights, batches, dropout and everything else that is random.
        device: ``auto``, or a device name of torch, such as ``cpu`` or ``cuda:1``.
        count_flops: count floating-point operations; steps are then executed eagerly.
        experiment: the name of the preset that chose these settings.
        sweep: the name of a multirun's folder; starting it again continues it.
        resume: the run folder to continue, or ``auto``.
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
        """Check the values.

        Raises UserError unless every choice and name is valid, there is at least one task and the
        seed is not negative, and if ``order_seed`` is set without a random order.
        """
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
        """The name of the stream; ``custom`` if the tasks are not those of the stream."""
        return self.stream.name if list(self.task) == self.stream.tasks else "custom"
