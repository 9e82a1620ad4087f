"""Models: the pretrained encoder, the tasks' heads, adapters, and private tensors of tasks."""
