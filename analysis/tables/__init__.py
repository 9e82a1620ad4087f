"""Tables of runs: `compare`, gaps to `references`, `paired` differences, as a `text_table`."""
