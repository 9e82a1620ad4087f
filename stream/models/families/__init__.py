"""The encoder families: where each one's sub-layers, maps and norms are, and how it reads a text.

A family is one YAML file here, read as a `Family`. `catalogue` finds them, `config` checks an
encoder's configuration against its family.
"""
