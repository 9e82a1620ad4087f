"""Where rows come from: the user's files, the Hugging Face hub, or a seeded grammar.

`files` finds and reads a user's files; several `parts` may be one table, and `class_folders` have
one file per row. `unpacking` gives the bytes, and `no_table` says what cannot be read. Of text,
`encoding` decodes it (`legacy` guesses what is not UTF-8), `preamble` finds what stands above the
table, `dialect` and `quoting` detect how it is written, `delimited`, `json_rows` and `tagged_lines`
parse it. Of typed columns, `arrow_values` says what they stand for; `sheets` reads workbooks. `hub`
fetches a data set once, and `hub_record` keeps a record of what was fetched. `generated` makes
miniature tasks with `grammar` and `lexicon`.
"""
