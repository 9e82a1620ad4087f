"""Runs killed at random, hostile input, memory and cost over a long stream."""
