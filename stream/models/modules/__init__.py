"""What methods insert into the encoder: bottlenecks, low-rank maps, prompts, columns, gates.

`by_task` keeps modules by the names of tasks, `active_tasks` says which of them are read now.
"""
