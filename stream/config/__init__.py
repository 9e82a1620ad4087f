"""The settings of a run as dataclasses, and how they are composed from YAML and overrides.

`run`, `task`, `data` and `backbone` hold the dataclasses with every default; `compose` is the only
module here that uses Hydra; `paths` finds the YAML files, the files of a backbone and the user's
cache.
"""
