"""What a method says about itself: where it comes from, what it keeps, how it learns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tags:
    """What kind of method it is.

    Attributes:
        paper: who published it, and where: ``Houlsby et al. 2019, arXiv 1902.00751``.
        stores: what is kept of each task, in a few words.
        parameter_isolation: learning a task changes no byte of what serves an earlier one.
        keeps_logits: tasks are not isolated by what the encoder gives each of them, but learning
            changes nothing that an earlier task's predictions use: its logits have the same bits.
        reads_past_tasks: what serves a task includes what earlier tasks left, so order matters.
        is_reference: a bound or control that methods are compared with.
        is_multitask: reads all tasks' training rows at once: a reference, not continual learning.
        seeded: learning draws random numbers, so that another seed gives another result.
        uses_encoder: false where tasks are fitted without the encoder and without steps.
        makes_steps: false where tasks are fitted without training steps; the encoder may be read.
        learns_spans: whether extractive question answering can be learned.
        sparse_differences: what a task owns is stored as differences at few places.
        keeps_pretrained: the pretrained values of what tasks own are stored for the next task.
        class_incremental: whether one head can answer all tasks. None: where the encoder is run,
            and learning a task changes what serves the others. True is for a method whose tasks
            are isolated by their heads alone.
        cuda_graph_safe: whether a training step may be captured as a CUDA graph. None: `loss` is
            captured and checked (`stream.training.captured`), `after_backward` is not. True says
            that both read and write the same tensors of the same shapes throughout a task, or
            while ``fit_tensors`` has the same ones, and ask none for its values. False says
            that a step cannot be captured.
        splits_batches: whether several ranks may each learn a slice of a batch: what `loss` and
            hooks read of the batch is summed over its examples, or taken as a mean by `Batch.mean`.
    """

    paper: str = ""
    stores: str = ""
    parameter_isolation: bool = False
    keeps_logits: bool = False
    reads_past_tasks: bool = False
    is_reference: bool = False
    is_multitask: bool = False
    seeded: bool = True
    uses_encoder: bool = True
    makes_steps: bool = True
    learns_spans: bool = True
    sparse_differences: bool = False
    keeps_pretrained: bool = True
    class_incremental: bool | None = None
    cuda_graph_safe: bool | None = None
    splits_batches: bool = True

    @property
    def shares_head(self) -> bool:
        """Whether the method can learn one head for all tasks (``scenario=shared_head``)."""
        if self.class_incremental is not None:
            return self.class_incremental
        return self.uses_encoder and not self.parameter_isolation

    @property
    def perfect_memory(self) -> bool:
        """Whether the logits of earlier tasks stay bit for bit what they were."""
        return self.parameter_isolation or self.keeps_logits
