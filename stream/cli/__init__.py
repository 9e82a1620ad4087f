"""What a person types: one command, `task-stream`, with a sub-command for each thing to do.

`main` is the command; it imports a sub-command's module when that is called. `run` starts one run
or a multirun (``python run_stream.py`` is its older spelling), `overrides` reads and checks its
command line before Hydra sees it, `sweeps` is what becomes of the jobs of a multirun. `tasks`,
`predict` and `export` are the other sub-commands on runs and tasks. `boundary` turns errors into
one line and an exit code; `terminal` keeps a run alive when nobody reads its output any more, and
`leaving` ends the process without taking apart what it imported.
"""
