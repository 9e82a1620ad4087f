"""One set of Houlsby adapters trained through the whole stream: the control for isolation.

It has what `adapter` has (Houlsby et al. 2019, arXiv 1902.00751) but for a copy per task: where it
forgets and `adapter` does not, the isolation is what removes forgetting, not the adapter. Called
"AdapterCL without isolation" or sequential adapters elsewhere (Madotto et al. 2021, arXiv
2012.15504, compare both).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from stream.errors import require
from stream.learners._shared.sequential import Sequential
from stream.learners.base import Tags


@dataclass
class SharedAdapter(Sequential):
    """Train one adapter set on task after task.

    Attributes:
        part: ``adapter`` alone; to train the whole encoder there is ``finetune``.
        size: units of an adapter.
    """

    lr: float = 1e-3
    head_lr: float | None = None
    part: str = "adapter"

    tags: ClassVar[Tags] = replace(
        Sequential.tags, paper="Madotto et al. 2021, arXiv 2012.15504", stores="head"
    )

    def __post_init__(self) -> None:
        """Check the values. Raises UserError for part=encoder, which is `finetune`."""
        super().__post_init__()
        same = "learner.part=encoder is what learner=finetune trains"
        require(self.part == "adapter", f"{same}; learner=shared_adapter trains adapters")
