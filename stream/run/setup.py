"""From a configuration to a run: tasks, pretrained encoder, learner."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from stream.config.backbone import BackboneConfig
from stream.config.paths import cache_folder, tokenizer_location
from stream.config.run import RunConfig
from stream.data.build import Notify, build_tasks
from stream.data.shared_head import with_shared_head
from stream.data.task import Task
from stream.data.text_encoder import TextEncoder
from stream.errors import require
from stream.evaluation.routed import Routing
from stream.evaluation.task_metrics import check_metrics
from stream.files.writable import CACHE, folder_errors
from stream.formatting import count
from stream.learners.base import Learner
from stream.models.encoder import Encoder, load_encoder
from stream.models.pretrained import check_backbone, check_vocabulary, with_idle_pooling
from stream.models.task_model import TaskModel
from stream.record.run_record import LedgerRecord
from stream.routing import ROUTERS
from stream.routing.features import PretrainedFeatures
from stream.run.checkpoint_manager import CheckpointManager
from stream.run.new_record import data_record, new_record
from stream.run.preloaded import ENCODERS, import_together
from stream.run.run import Run
from stream.run.selecting import Selecting


@dataclass(frozen=True)
class Place:
    """Where a learner computes.

    Attributes:
        device: where this process has it.
        precision: ``float32`` or ``bf16``.
        recorded: the device that the record names: with workers, theirs.
        gpu: the name of the GPU that it names.
    """

    device: torch.device
    precision: str
    recorded: torch.device
    gpu: str | None


def place_of(config: RunConfig) -> Place:
    """Return where a run without workers computes.

    Raises:
        UserError: a device that this machine does not have.
    """
    device = pick_device(config.device)
    precision = pick_precision(config.backbone.precision, device)
    return Place(device, precision, device, gpu_name(device))


def build_run(
    config: RunConfig,
    folder: Path,
    notify: Notify = lambda what, detail: None,
    tasks: Sequence[Task] | None = None,
    place: Callable[[], Place] | None = None,
) -> Run:
    """Build a run that is ready for its first task.

    Args:
        config: the whole configuration; ``config.learner`` is the learner.
        folder: the run folder; nothing is written or read there yet.
        notify: called with what is about to be done, and how far that is.
        tasks: taken instead of those of the configuration, whose data are not read then.
        place: returns where the learner computes, when the data are read; by default as the
            configuration says.

    Raises:
        UserError: something asked for is not there or makes no sense.
    """
    here = place_of(config) if place is None else None
    backbone = read_backbone(config)
    import_together(ENCODERS)  # workers start meanwhile
    check_backbone(backbone)
    for spec in config.task.values():
        check_metrics(spec)
    cache = cache_folder(config.cache)
    notify("loading transformers and the tokenizer", "")
    text_encoder = TextEncoder(
        tokenizer_location(backbone), backbone.max_length, cache, revision=backbone.revision
    )
    check_vocabulary(backbone, text_encoder)
    given = None if tasks is None else (tasks, ())
    with folder_errors(cache, CACHE):
        tasks, leaks = given or build_tasks(config, text_encoder, notify)
    if config.scenario == "shared_head":
        tasks = with_shared_head(tasks, config.stream.shared_labels)
    notify(f"loading the encoder {backbone.name}", "")
    encoder = load_encoder(
        backbone,
        vocabulary_size=text_encoder.vocabulary_size,
        leading=text_encoder.leading,
    )
    ledger = LedgerRecord(
        base_parameters=encoder.num_parameters(),
        encoder_layer_parameters=encoder.num_layer_parameters(),
    )
    here = place() if place is not None else here
    assert here is not None
    encoder.to(here.device)
    features = _features(config, encoder, here.precision)
    learner = attached(config, encoder, tasks, text_encoder.pad_id, here.precision)
    data = data_record(config.data.source, tasks, leaks)
    record = new_record(config, data, tasks, ledger, here.recorded, here.gpu)
    checkpoints = CheckpointManager(folder, config.checkpoint)
    routing = _routing(config, learner, features, here.device)
    return Run(config, tasks, learner, here.device, text_encoder, record, checkpoints, routing)


def read_backbone(config: RunConfig) -> BackboneConfig:
    """Return the settings of the encoder as it is loaded: what nothing reads does not count."""
    reads = config.learner.tags.uses_encoder or _reads_features(config)
    return config.backbone if reads else with_idle_pooling(config.backbone)


def attached(
    config: RunConfig, encoder: Encoder, tasks: Sequence[Task], pad_id: int, precision: str
) -> Learner:
    """Return the learner of a run, which begins the stream on an encoder.

    Args:
        config: the whole configuration; ``config.learner`` is the learner.
        encoder: in float32, where the learner computes.
        tasks: the stream.
        pad_id: the token that fills up batches.
        precision: ``float32`` or ``bf16``.

    Raises:
        UserError: as `Learner.attach`.
    """
    if config.training.gradient_checkpointing:
        encoder.checkpoint_layers()
    mask, storage = config.shared_head.mask, config.backbone.storage
    model = TaskModel(encoder, config.seed, precision=precision, mask=mask, storage=storage)
    learner = config.learner
    if config.select is not None:
        learner = Selecting(learner, config.candidates)
    learner.attach(model, tasks=tasks, seed=config.seed, pad_id=pad_id)
    return learner


def _reads_features(config: RunConfig) -> bool:
    """Whether a router reads the pretrained encoder."""
    return config.scenario == "inferred" and config.router.reads_features


def _features(config: RunConfig, encoder: Encoder, precision: str) -> PretrainedFeatures | None:
    """Return what a router reads of the pretrained encoder; None where none does.

    It is copied before the learner inserts anything.
    """
    if not _reads_features(config):
        return None
    return PretrainedFeatures(encoder, features=config.router.features, precision=precision)


def _routing(
    config: RunConfig, learner: Learner, features: PretrainedFeatures | None, device: torch.device
) -> Routing | None:
    """Return what infers tasks; None where they are known. The learner has begun the stream."""
    if config.scenario != "inferred":
        return None
    if features is not None:
        features.share(learner)
    router = ROUTERS[config.router.kind](config.router)
    tokens, shared = config.evaluation.batch_tokens, config.stream.shared_labels
    return Routing(router, features, learner, device, tokens, shared)


def pick_device(name: str) -> torch.device:
    """Return the device, and compute on it: ``auto`` takes a GPU where there is one.

    Raises:
        UserError: a device that this machine does not have.
    """
    device = device_called(name)
    if device.index is not None:
        torch.cuda.set_device(device)
    return device


def device_called(name: str) -> torch.device:
    """Return the device that is called so; CUDA is not initialized for it.

    Raises:
        UserError: a device that this machine does not have.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if gpus else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        found = count(gpus, "CUDA device") if gpus else "no CUDA device"
        valid = ", ".join(["cpu", *(f"cuda:{index}" for index in range(gpus))])
        told = f"device={name}: torch finds {found}{_visible()}. Valid: {valid}"
        require((device.index or 0) < gpus, told)
    return device


def _visible() -> str:
    """Return what the user's environment says about the GPUs that programs may see."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if chosen is None else f" (CUDA_VISIBLE_DEVICES={chosen})"


def gpu_name(device: torch.device) -> str | None:
    """Return the name of a GPU; None of a CPU. CUDA is initialized for it."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


def pick_precision(wanted: str, device: torch.device) -> str:
    """Return ``float32`` or ``bf16``.

    ``auto`` takes bf16 on a GPU that computes in it, ``fast`` also on a CPU that does.
    """
    if wanted not in ("auto", "fast"):
        return wanted
    if device.type == "cuda":
        half = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        able = torch.cpu.get_capabilities()
        half = wanted == "fast" and any(able.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return "bf16" if half else "float32"
