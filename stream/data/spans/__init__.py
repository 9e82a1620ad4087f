"""Extractive question answering: the answer to a question is a span of its context.

`tokens` finds the tokens of an answer before training; `answers` turns logits back into text and
compares it with the reference answers.
"""
