"""Settings of the router: how a run finds the task of a text where nobody names it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import Range, Settings, setting
from stream.config.task import METRICS_OF, TaskSpec, is_import_path
from stream.errors import require

FEATURE_KINDS = ("class_mean", "mahalanobis")  # read the pretrained encoder
OUTPUT_KINDS = ("entropy", "confidence")  # read the outputs of every task


@dataclass
class RouterConfig(Settings):
    """How the task of a text is found with ``scenario=inferred``.

    Attributes:
        kind: what says which task a text belongs to: the nearest mean of a class of its training
            rows (``class_mean``), the same under one covariance of all tasks (``mahalanobis``), the
            lowest entropy of its outputs, divided by the most that they can have (``entropy``), or
            the most confident outputs (``confidence``).
        features: what the first two kinds read of the pretrained encoder: the ``mean`` over the
            tokens, scaled to length 1, as encoders of sentences are used, or what heads read
            (``pooled``: see ``backbone.pooling``).
        shrinkage: how much of the covariance is replaced by a multiple of the identity with the
            same trace: 1 leaves no more than ``class_mean`` has.
        confidence: the largest probability (``softmax``), or minus the free ``energy``.
    """

    GROUP: ClassVar[str] = "router"

    kind: str = setting("mahalanobis", (*FEATURE_KINDS, *OUTPUT_KINDS))
    features: str = setting("mean", ("mean", "pooled"))
    shrinkage: float = setting(0.1, Range(1e-6, 1), needs={"kind": "mahalanobis"})
    confidence: str = setting("softmax", ("softmax", "energy"), needs={"kind": "confidence"})

    @property
    def reads_features(self) -> bool:
        """Whether it reads the pretrained encoder, not the outputs of the tasks."""
        return self.kind in FEATURE_KINDS

    def check(self, tasks: Mapping[str, TaskSpec]) -> None:
        """Check that the tasks of a stream can be told apart.

        Raises:
            UserError: a task without classes, for a kind that reads their probabilities; questions
                that a function of the user's own judges, which cannot tell whose answers are wrong.
        """
        for name, spec in tasks.items():
            own = is_import_path(spec.metric) and spec.target == "span"
            require(
                not own,
                f"scenario=inferred: metric {spec.metric!r} of task {name!r} cannot judge answers "
                f"of other tasks; use {' or '.join(METRICS_OF['span'])}",
            )
        lost = [name for name, spec in tasks.items() if spec.target != "class"]
        require(
            self.reads_features or not lost,
            f"router.kind={self.kind} compares probabilities of classes, and there are none in: "
            f"{', '.join(lost)}; use router.kind={' or '.join(FEATURE_KINDS)}",
        )
