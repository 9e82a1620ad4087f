"""What happens to rows between a source and the tokenizer.

`rows` keeps each row or drops it with a reason, `splits` divides a source that lacks splits,
`samples` takes as many rows as the limit says, `leakage` finds held-out texts in training rows,
`account_lines` reports what became of every row, and `shortages` what they lack.
"""
