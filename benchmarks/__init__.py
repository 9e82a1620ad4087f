"""Measurements, which are no tests.

`speed` as ratios in one process, `stress` (kills, hostile input, memory, growth) and `paper`,
the evidence. Each module says how to start it.
"""
