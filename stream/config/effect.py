"""Which settings have an effect on which runs: one table, and the check of what a user gave.

What is without effect by another field of the same object (``probe.rows`` without ``probe.every``)
is said at the field (`stream.config.setting`). Here is what depends on other parts of the run.

Settings that are not in the table always have an effect. Some of them may seem not to: ``seed``
also names the repetition of learners that draw nothing; ``device`` says where the encoder is put,
even if it is not run; ``limits.*``, ``training.min_steps`` and ``checkpoint.every`` are bounds,
which need not be reached; ``evaluation.reuse`` asks fingerprints, which may differ for every
learner; and a coefficient of 0 is a value like others, so what it multiplies may be given too.
"""

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from stream.config.data import FilesData
from stream.config.paths import from_home
from stream.config.run import RunConfig
from stream.errors import require


class Effect(NamedTuple):
    """When settings have an effect.

    Attributes:
        settings: their names; a ``*`` stands for any text.
        used: whether they have an effect on a run.
        otherwise: when they have none, for the message; in braces what a run says.
    """

    settings: Sequence[str]
    used: Callable[[RunConfig], bool]
    otherwise: str


def _steps(config: RunConfig) -> bool:
    """Whether the learner makes training steps."""
    return config.learner.tags.makes_steps


def _encodes(config: RunConfig) -> bool:
    """Whether the learner runs the encoder."""
    return config.learner.tags.uses_encoder


def _several(config: RunConfig) -> bool:
    """Whether there is more than one task."""
    return len(config.task) > 1


def _inferred(config: RunConfig) -> bool:
    """Whether the task of a text is inferred."""
    return config.scenario == "inferred"


def _stored(config: RunConfig) -> bool:
    """Whether weights are read, not drawn."""
    return config.backbone.origin != "random"


def _from_hub(config: RunConfig) -> bool:
    """Whether the encoder or its tokenizer is read from the hub."""
    backbone = config.backbone
    name = backbone.tokenizer
    elsewhere = name is None or (
        importlib.util.find_spec(name.partition("/")[0]) is not None or from_home(name).is_dir()
    )
    return backbone.origin == "hub" or not elsewhere


def _rooted(config: RunConfig) -> bool:
    """Whether a task's folder is relative to ``data.root``."""
    is_files = isinstance(config.data, FilesData)
    return not is_files or any(spec.needs_root for spec in config.task.values())


def _from(*sources: str) -> Callable[[RunConfig], bool]:
    """Return whether the rows of a run come from one of ``sources``."""
    return lambda config: config.data.source in sources


def _sampled(config: RunConfig) -> bool:
    """Whether training rows are sampled."""
    return config.limits.train is not None or config.limits.per_class is not None


NO_STEPS = "with learner={learner}, which makes no training steps"
TABLE = (
    Effect(("evaluation.linear_probe",), _steps, NO_STEPS),
    Effect(("training.*", "probe.*", "checkpoint.every", "count_flops"), _steps, NO_STEPS),
    Effect(
        ("backbone.pooling", "backbone.precision", "backbone.storage", "backbone.attention"),
        lambda config: _encodes(config) or (_inferred(config) and config.router.reads_features),
        "with learner={learner}, which does not run the encoder",
    ),
    Effect(
        ("backbone.location", "backbone.sha256"),
        _stored,
        "with backbone={backbone}: its weights are random (backbone.origin=random)",
    ),
    Effect(
        ("backbone.shape.*",),
        lambda config: not _stored(config),
        "with backbone={backbone}: its files say what shape it has",
    ),
    Effect(
        ("backbone.revision",),
        _from_hub,
        "with backbone={backbone}: nothing of it is read from the hub",
    ),
    Effect(("order", "order_seed", "evaluation.unseen"), _several, "with one task"),
    Effect(("router.*",), _inferred, "with scenario={scenario}; use scenario=inferred"),
    Effect(
        ("router.features",),
        lambda config: config.router.reads_features,
        "with router.kind={router}, which reads the outputs of the tasks",
    ),
    Effect(
        ("evaluation.reuse",),
        lambda config: not _inferred(config),
        "with scenario=inferred, which measures every cell",
    ),
    Effect(
        ("shared_head.*",),
        lambda config: config.scenario == "shared_head",
        "with scenario={scenario}; use scenario=shared_head",
    ),
    Effect(("shared_head.mask",), _steps, NO_STEPS),
    Effect(
        ("stream.shared_labels",),
        lambda config: config.scenario != "known",
        "with scenario={scenario}: each task has a head of its own",
    ),
    Effect(
        ("workers.engine", "workers.per_gpu", "workers.threads", "workers.address"),
        lambda config: config.workers.used,
        "with workers.count=1; use workers=2 or more",
    ),
    Effect(("workers.per_gpu",), lambda config: config.device != "cpu", "with device=cpu"),
    Effect(("limits.seed",), _sampled, "with limits.train=null limits.per_class=null"),
    Effect(("data.root",), _rooted, "on these tasks: the folders of their files are absolute"),
    Effect(("task.*.files.*", "task.*.original.*"), _from("files"), "with data={data}"),
    Effect(("task.*.hub.*",), _from("hub"), "with data={data}"),
    Effect(("task.*.generated.*",), _from("generated"), "with data={data}"),
)
"""When a setting has an effect, and what to say when it has none."""


def check_effects(runs: Iterable[tuple[RunConfig, Mapping[str, object]]]) -> None:
    """Check that every setting that was given has an effect on at least one run of a command line.

    So a sweep over learners may give ``training.epochs`` although one of them makes no steps.

    Args:
        runs: each run, and the settings that were given for it, such as ``training.epochs``; what
            presets or defaults say does not count.

    Raises:
        UserError: a setting without effect on any of the runs.
    """
    idle: dict[str, str] = {}
    used: set[str] = set()
    for config, given in runs:
        for name, value in given.items():
            otherwise = _without_effect(config, name)
            if otherwise is None:
                used.add(name)
            else:
                idle.setdefault(name, f"{name}={value} has no effect {otherwise}")
    for name, message in idle.items():
        require(name in used, message)


def _without_effect(config: RunConfig, name: str) -> str | None:
    """Return why a setting has no effect on a run; None if it has one."""
    facts = {
        "learner": config.learner.name,
        "backbone": config.backbone.name,
        "data": config.data.source,
        "scenario": config.scenario,
        "router": config.router.kind,
    }
    group, _, field = name.partition(".")
    if group == "learner" and field in (config.select or ()):
        return f"with select.{field}, whose values are tried instead"
    for row in TABLE:
        matches = any(fnmatchcase(name, pattern) for pattern in row.settings)
        if matches and not row.used(config):
            return row.otherwise.format(**facts)
    return None
