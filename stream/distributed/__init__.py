"""One run in several processes, its ranks: torchrun starts them, each learns a slice of a batch.

`launched` reads what torchrun says, `slices` deals rows out, `world` is the group of the ranks, and
`gradients` averages what their backward passes give.
"""
