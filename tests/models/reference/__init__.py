"""Forward passes of encoder families, written by hand from their definitions.

Each module has one family: a function of the weights by name, the configuration and a batch, which
uses nothing of transformers' modules. `functions` has what families share, `check` compares.
"""
