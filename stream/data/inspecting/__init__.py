"""A user's own file: its columns, which of them are text and label, and the task that this makes.

`parts` finds the splits of a folder, `columns` and `shapes` describe every column, `column_names`
and `roles` choose among them, `reasons` and `several` say why one cannot be chosen, `labels` tells
classes from scores, `inspection` makes the task and reads it as a run would, `report` says all of
it in lines.
"""
