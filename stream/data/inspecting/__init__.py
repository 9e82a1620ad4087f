"""A user's own file: its columns, which of them are text and label, and the task that this makes.

`columns` describes every column, `roles` chooses among them, `labels` tells classes from scores,
`inspection` makes the task and reads it as a run would, `report` says all of it in lines.
"""
