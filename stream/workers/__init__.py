"""Engines that run functions in other processes, whatever the functions do.

What they do for a run, learning tasks and measuring cells, is in `stream.run`.
"""
