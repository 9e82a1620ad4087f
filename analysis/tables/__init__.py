"""Tables of runs: `compare` them, gaps to `references`, `paired` differences, the `sheet`."""
