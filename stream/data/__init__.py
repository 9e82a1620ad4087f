"""From files to encoded tasks.

`build` makes the tasks of a stream; `loading` reads one from its source (`sources`), and
`prepare` accounts for every row, divides it into splits, takes samples and removes leaks.
`text_encoder` turns texts into token ids once; `batches` and `mixture` put rows together.
`spans` is what extractive question answering needs besides.
"""
