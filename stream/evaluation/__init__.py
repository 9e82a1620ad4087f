"""How good a learner is now.

`evaluate` fills a cell of the matrix, `routed` adds what comes of it when the task is inferred,
`task_metrics` has the metrics of single tasks, `probe` scores a sample of the tasks while another
one is being learned.
"""
