"""The settings of a run as dataclasses, and how they are composed from YAML and overrides.

`run`, `task` and `inputs` hold the dataclasses with every default; `compose` is the door to Hydra;
`paths` finds the YAML files, the files of a backbone and the user's cache.
"""
