"""Learning one task.

`loop` is the only training loop, `engine` executes a step (eagerly or as a captured CUDA
graph), `fit_state` is where it stands, `snapshot` what a checkpoint keeps of that, `schedule`
the optimizer and its learning rate, `flops` counts operations.
"""
