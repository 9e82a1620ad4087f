"""What happens to rows between a source and the tokenizer.

`rows` keeps or drops each with a reason, `splits` divides a source that has no splits, `samples`
takes the rows of a limit, `leakage` finds held-out texts in training rows, `account_lines` says
what became of every row.
"""
