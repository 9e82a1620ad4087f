"""A search for the settings of learners, judged on validation rows.

- ``options``: what may be asked for (``tune.NAME=VALUE``)
- ``space``: the settings of a learner that are searched, and where a grid goes on
- ``grid`` and ``sampled``: the two ways to choose what is tried
- ``record``: what was tried, ``trials.json``
- ``search``: one learner after another, each with the same number of trials
- ``preset``: what was chosen, as a file that ``learner=NAME`` takes
- ``table``: what people see

What runs the trials is given to it: `stream.cli.tune` launches ordinary runs.
"""
