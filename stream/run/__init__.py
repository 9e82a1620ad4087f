"""One run, from its configuration to its record.

`settings` composes the configuration, `session` opens what a run needs while it lasts. `runner` is
the stream; `setup` builds what it is made of; `checkpoint` and `checkpoint_manager` write what a
run needs to go on, `resume` goes on, `interrupt` stops in time. `load` opens a finished run again,
for `verify`, `predict`, `export` and `layer_ablation`.
"""
