"""Encoders by hand, in float64, one text at a time: what the tests compare transformers' with."""
