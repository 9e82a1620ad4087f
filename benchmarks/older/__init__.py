"""Older comparisons, of ten tasks and of more rows; the tables of docs/methods.md."""
