"""Where rows come from: the user's files, the Hugging Face hub, or a seeded grammar.

`files` reads a user's files; `dialect` detects how a text file is written, and `delimited` parses
delimited text and JSON. `hub` fetches a data set once, and `hub_record` keeps a record of what was
fetched. `generated` makes miniature tasks with `grammar` and `lexicon`.
"""
