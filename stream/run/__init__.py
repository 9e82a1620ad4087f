"""One run, from its configuration to its record.

`run` is the run: tasks, learner, record and checkpoints. `setup` builds one, with the `new_record`
of it; `runner` is the stream, whose steps are `learning`, `scoring` and `accounting`. `checkpoint`
and `checkpoint_manager` write what a run needs to go on; `resume` goes on, `interrupt` stops in
time, and `lock` keeps a second process away. `settings` are those that a run recorded. `load` opens
a finished run again, for `verify`, `predict`, `export` and `layer_ablation`.
"""
