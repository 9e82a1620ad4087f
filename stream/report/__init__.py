"""What people see of a run.

`progress` while it runs, a `summary` at its end, `plots`, and `tracking`, the door to Weights &
Biases.
"""
