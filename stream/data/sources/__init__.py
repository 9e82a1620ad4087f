"""Where rows come from: people's files, the Hugging Face hub, or a seeded grammar.

`files` reads any file (`dialect` finds out how delimited text is written, `delimited` parses it),
`hub` fetches once and `hub_record` remembers what; `generated` writes miniature tasks with
`grammar` and `lexicon`.
"""
