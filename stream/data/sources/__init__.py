"""Where rows come from: the user's files, the Hugging Face hub, or a seeded grammar.

`files` finds and reads a user's files; several `parts` may be one table, and `class_folders` have
one file per row. Of text, `encoding` decodes it, `preamble` finds what stands above the table,
`dialect` and `quoting` detect how it is written, `delimited` and `json_rows` parse it. Of typed
columns, `arrow_values` says what they stand for. `hub` fetches a data set once, and `hub_record`
keeps a record of what was fetched. `generated` makes miniature tasks with `grammar` and `lexicon`.
"""
