"""One run, from its configuration to its record.

`run` is the run: tasks, learner, record and checkpoints. `settings` composes the configuration or
takes a recorded one, `session` opens what a run needs while it lasts. `setup` builds a run, with
its `new_record`; `runner` is the stream, whose steps are `learning`, `scoring` and `accounting`.
`checkpoint` and `checkpoint_manager` write what a run needs to go on; `resume` goes on, `interrupt`
stops in time, and `lock` keeps a second process away. `load` opens a finished run again, for
`verify`, `predict`, `export` and `layer_ablation`.
"""
