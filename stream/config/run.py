"""Settings: everything that decides a run, with the defaults.

Treat the objects as read-only. (They cannot be frozen, because Hydra composes into them.)
"""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from omegaconf import MISSING

from stream.config.backbone import BackboneConfig
from stream.config.data import ORDERS, FilesData, Limits, StreamConfig
from stream.config.display import AUTO, DISPLAYS
from stream.config.parts import parts_of
from stream.config.router import RouterConfig
from stream.config.select import Candidate, candidates_of
from stream.config.setting import (
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Range,
    Settings,
    at_least,
    setting,
)
from stream.config.shared_head import SharedHeadConfig, check_classes, require_shares_head
from stream.config.task import TaskSpec
from stream.config.workers import WorkersConfig
from stream.errors import NeededError, choose, require, unknown
from stream.formatting import CUSTOM

LEAKS = ("drop", "warn", "error")
MOST_EPOCHS = 1_000_000
SCENARIOS = ("known", "inferred", "shared_head")
# Settings that change no score, so a run may be resumed with other values of them.
SCORE_NEUTRAL = (
    "sweep",
    "tracking",
    "device",
    "cache",
    "checkpoint",
    "protocol",
    "experiment",
    "resume",
    "probe",
    "display",
    "figures",
    "workers",
)
ADDED = {
    "backbone.family": None,
    "backbone.storage": "float32",
    "backbone.attention": "auto",
    "training.gradient_checkpointing": False,
}
"""Settings that records of older versions lack, and how it was before there was a choice."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
DEVICE = re.compile(r"auto|cpu|cuda(:(0|[1-9][0-9]{0,2}))?")  # torch reads no "cuda:00"
DEVICES = ("auto", "cpu", "cuda", "cuda:0", "cuda:1")


@dataclass
class TrainingConfig(Settings):
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
        gradient_checkpointing: keep of every layer its input alone while a step goes forward, and
            compute the layer again to go backward: less memory, a third more work, and the same
            gradients.
    """

    GROUP: ClassVar[str] = "training"

    epochs: int = setting(3, at_least(1, MOST_EPOCHS))
    min_steps: int = setting(48, at_least(0))
    batch_size: int = setting(32, at_least(1))
    warmup: float = setting(0.1, Range(0, 1, below=True))
    weight_decay: float = setting(0.01, NOT_NEGATIVE)
    clip_norm: float = setting(1.0, POSITIVE)
    engine: str = setting("auto", ("auto", "eager", "captured"))
    gradient_checkpointing: bool = False


@dataclass
class EvaluationConfig(Settings):
    """How the score matrix is filled.

    Attributes:
        split: ``test`` for results, ``validation`` for choosing hyperparameters.
        reuse: ``off`` measures every cell; ``on`` reuses a task's last cell if the fingerprint of
            everything that serves the task is unchanged; ``verify`` does so too, but measures the
            whole last row.
        baseline: also score the untrained learner on every task.
        linear_probe: train a new head on the encoder for each task, right after the task and at the
            end, to tell what the encoder lost from what its old head no longer fits.
        unseen: after every task, also score the tasks that are not learned yet (forward transfer).
        batch_tokens: the largest number of padded tokens per batch; it is fixed, so that the
            shapes of a task's batches never change. Null is 2048 on a CPU and 65536 on a GPU.
    """

    GROUP: ClassVar[str] = "evaluation"

    split: str = setting("test", ("test", "validation"))
    reuse: str = setting("off", ("off", "verify", "on"))
    baseline: bool = True
    unseen: bool = False
    linear_probe: bool = False
    batch_tokens: int | None = setting(None, at_least(512))


@dataclass
class ProbeConfig(Settings):
    """Scores that are measured while a task is learned.

    Attributes:
        every: the number of training steps between two measurements; null measures none.
        rows: how many examples of each task so far are used.
    """

    GROUP: ClassVar[str] = "probe"

    every: int | None = setting(None, at_least(1))
    rows: int = setting(64, at_least(2), needs={"every": None})


@dataclass
class CheckpointConfig(Settings):
    """When a run is saved, so that it can be resumed.

    Attributes:
        every: the number of training steps between checkpoints within a task; null saves only
            after whole tasks.
        enabled: false writes no checkpoint at all.
    """

    GROUP: ClassVar[str] = "checkpoint"

    every: int | None = setting(500, at_least(1), needs={"enabled": True})
    enabled: bool = True


@dataclass
class RunConfig(Settings):
    """Everything that decides a run.

    Attributes:
        learner: the method, chosen with ``learner=NAME``; its fields are the hyperparameters.
        data: the source of the rows, chosen with ``data=NAME``.
        tracking: the experiment tracker, chosen with ``tracking=NAME``.
        backbone: the pretrained encoder, chosen with ``backbone=NAME``.
        stream: the named list of tasks, chosen with ``stream=NAME``.
        task: the tasks themselves by name, in order.
        scenario: what is known when a text is served: its task (``known``), nothing, so that a
            router infers the task (``inferred``), or nothing, and one head answers for the classes
            of all tasks met so far (``shared_head``).
        shared_head: how the one head of ``scenario=shared_head`` learns.
        router: how the task is inferred.
        order: the order of the tasks: ``given``, ``reversed``, ``by_size`` (fewest training
            examples first), ``random``, or one of the stream's own, such as ``published_1``.
        order_seed: the seed of a random order; null is 0.
        leaks: what to do with held-out texts in training rows: ``drop`` the training rows,
            ``warn``, or stop with an ``error``.
        cache: the folder for downloaded data and encoded tasks; null is the user's cache folder.
        limits: the largest number of rows of each task.
        training: the training schedule.
        evaluation: how the score matrix is filled.
        probe: scores within a task.
        checkpoint: when the run is saved.
        workers: how many tasks are learned at once; ``workers=4`` is ``workers.count=4``.
        select: what is tried for each task, of which the best on validation rows is kept: lists of
            values by the learner's fields, and ``restarts``; null tries nothing.
        seed: the seed of first weights, batches, dropout and everything else that is random.
        device: ``auto``, ``cpu``, ``cuda``, or one of several GPUs, such as ``cuda:1``.
        count_flops: count floating-point operations; steps are then executed eagerly.
        protocol: the name of the preset that chose the rows and epochs of a published protocol.
        experiment: the name of the preset that chose these settings.
        sweep: the name of a multirun's folder; starting it again continues it.
        resume: the run folder to continue, or ``auto``.
        display: ``auto`` shows a live line where there can be one, ``plain`` plain lines, and
            ``quiet`` errors, warnings and the final result only.
        figures: draw the run when it ends; ``task-stream figures`` does so later.
    """

    learner: Any = MISSING
    data: Any = MISSING
    tracking: Any = MISSING
    backbone: BackboneConfig = MISSING
    stream: StreamConfig = field(default_factory=StreamConfig)
    task: dict[str, TaskSpec] = field(default_factory=dict)
    scenario: str = setting("known", SCENARIOS)
    shared_head: SharedHeadConfig = field(default_factory=SharedHeadConfig)
    router: RouterConfig = field(default_factory=RouterConfig)
    order: str = "given"
    order_seed: int | None = setting(None, SEED, needs={"order": "random"})
    leaks: str = setting("drop", LEAKS)
    cache: str | None = None
    limits: Limits = field(default_factory=Limits)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    workers: WorkersConfig = field(default_factory=WorkersConfig)
    select: Any = None  # or a dict, which OmegaConf cannot merge into a typed one that is null
    seed: int = setting(0, SEED)
    device: str = "auto"
    count_flops: bool = False
    protocol: str | None = None
    experiment: str | None = None
    sweep: str | None = None
    resume: str | None = None
    display: str = setting(AUTO, DISPLAYS)
    figures: bool = True

    def __post_init__(self) -> None:
        """Check the values, and put the parts of sets that are cut in the places of the sets.

        Raises UserError unless every name is valid, there is at least one task, the files of all
        tasks have a folder, and the learner can choose as asked for. Whether this machine has the
        device is not looked at.
        """
        super().__post_init__()
        self._check_chosen()
        require(len(self.task) >= 1, "the stream has no task; choose some: 'task=[sst2,cola]'")
        self.stream.check_shared(self.task)
        self._cut_sets()
        orders = () if self.stream_name == CUSTOM else self.stream.orders
        choose("order", self.order, (*ORDERS, *orders))
        for name in self.task:
            fits = NAME.fullmatch(name) is not None
            require(fits, f"task name {name!r} may hold letters, digits, '_' and '-' only")
        named = self.sweep is None or NAME.fullmatch(self.sweep) is not None
        require(named, f"sweep name {self.sweep!r} may hold letters, digits, '_' and '-' only")
        if DEVICE.fullmatch(self.device) is None:
            raise unknown("device", self.device, (*DEVICES, "..."))
        if self.scenario == "inferred":
            self.router.check(self.task)
        if self.scenario == "shared_head":
            require_shares_head(self.learner)
            check_classes(self.task, self.stream.shared_labels)
        if isinstance(self.data, FilesData):
            self._check_files()
        if self.select is not None:
            require(
                self.probe.every is None,
                "probe.every and select exclude each other: a task is learned several times",
            )
            candidates_of(self.select, self.learner)
        self.workers.check(self)

    def _check_files(self) -> None:
        """Raise UserError unless it is known where and how the rows of all tasks are in files."""
        for name, spec in self.task.items():
            require(
                bool(spec.files.text or spec.original.text),
                f"task {name!r} cannot be read with data=files: its YAML names no columns of text "
                "in files.text",
            )
        lost = ", ".join(name for name, spec in self.task.items() if spec.needs_root)
        if lost and self.data.root is None:
            raise NeededError(f"data.root is needed: give data.root=FOLDER, which has {lost}")

    def _check_chosen(self) -> None:
        """Raise UserError for a YAML of a person's own that changes none of the program's."""
        for group in ("learner", "data", "tracking"):
            require(
                not isinstance(getattr(self, group), dict),
                f"the YAML of {group}=NAME says which {group} it changes: 'defaults: [NAME, "
                "_self_]'",
            )

    @property
    def candidates(self) -> list[Candidate]:
        """What learns each task: with ``select`` several, else the learner as it is."""
        chosen = self.select
        return [Candidate({})] if chosen is None else candidates_of(chosen, self.learner)

    def _cut_sets(self) -> None:
        """Cut sets by class; what a task says of itself counts before what the stream says."""
        of_stream = self.stream.cut if list(self.task) == self.stream.tasks else {}
        tasks: dict[str, TaskSpec] = {}
        placed: dict[str, list[str]] = {}
        for name, spec in self.task.items():
            by_stream = name in of_stream and spec.cut.is_whole
            parts = parts_of(name, spec, of_stream[name] if by_stream else spec.cut)
            both = sorted(parts.keys() & tasks.keys())
            require(not both, f"two tasks are called {', '.join(both)}: one is a part of {name}")
            tasks |= parts
            if by_stream:
                placed[name] = list(parts)
        self.task, self.stream = tasks, self.stream.with_parts(placed) if placed else self.stream

    @property
    def stream_name(self) -> str:
        """The name of the stream; ``custom`` if the tasks are not those of the stream."""
        return self.stream.name if list(self.task) == self.stream.tasks else CUSTOM
