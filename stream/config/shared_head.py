"""Settings: one head over the classes of all tasks (``scenario=shared_head``)."""

from dataclasses import dataclass
from typing import ClassVar

from stream.config.setting import Settings, setting

MASKS = ("none", "labels_trick", "task")


@dataclass
class SharedHeadConfig(Settings):
    """How one head learns the classes of all tasks.

    Attributes:
        mask: between which classes the loss of new rows chooses: all met so far (``none``); those
            that occur in the batch (``labels_trick``: Zeno et al. 2018, arXiv 1803.10123); those
            of the row's own task (``task``: the ``train_mask`` of L2P, Wang et al. 2022, arXiv
            2112.08654). Stored rows of earlier tasks, and evaluation, choose between all met so
            far whatever it says.
    """

    GROUP: ClassVar[str] = "shared_head"

    mask: str = setting("none", MASKS)
