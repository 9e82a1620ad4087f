"""What a person types: one command, `task-stream`, with a sub-command for each thing to do.

`main` is the command, `run` starts one run or a multirun (``python run_stream.py`` is its older
spelling), `overrides` checks what stands on the command line before Hydra sees it, `sweeps` is what
becomes of the jobs of a multirun, `tasks` shows and prepares tasks, `terminal` keeps a run alive
when nobody reads its output any more.
"""
