"""The optimizer and the learning rate over the steps of a task (Houlsby et al. 2019)."""

import torch

from stream.learners.base import Learner


def warmup_then_linear(step: int, steps: int, warmup: float) -> float:
    """Return the learning rate at ``step`` (from 0) as a fraction of its peak.

    Rises linearly over the first ``warmup`` of the steps, then falls linearly to 0 (Houlsby et al.
    2019, section 3.1). Step 0 already learns, and the last step is the last above 0.
    """
    rising = int(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / (steps - rising)


def optimizer_for(
    learner: Learner, weight_decay: float, *, capturable: bool = False
) -> torch.optim.AdamW:
    """Return AdamW over what the learner trains, at the learning rates that it says.

    Weights decay, biases and LayerNorms do not (as in adapter-bert). A ``capturable`` one keeps
    its count of steps on the GPU, and updates all in few kernels.
    """
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in learner.trained_parameters().items():
        lr = learner.learning_rate(name)
        decay = weight_decay if parameter.ndim >= 2 else 0.0
        groups.setdefault((lr, decay), []).append(parameter)
    options = [
        {"params": p, "lr": lr, "peak_lr": lr, "weight_decay": d} for (lr, d), p in groups.items()
    ]
    # A learner that trains nothing for this task: AdamW wants a group, which may be empty.
    options = options or [{"params": []}]
    if capturable:
        return torch.optim.AdamW(options, eps=1e-6, capturable=True, fused=True)
    return torch.optim.AdamW(options, eps=1e-6, foreach=True)
