"""Ratios measured in one process, so that a noisy machine does not decide them."""
