"""Encoder families: which learner works on which, and how fast they learn; docs/encoders.md."""
