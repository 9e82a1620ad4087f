"""From files to encoded tasks.

`build` makes the tasks of a stream. For each one, `loading` reads its rows from a source
(`sources`), and `prepare` accounts for every row, divides the rows into splits, takes samples and
removes leaks. `text_encoder` turns texts into token ids once and caches them; `batches` and
`mixture` put examples together. `task` and `table` hold the objects that are passed on, `spans`
what extractive question answering needs in addition. `inspecting` describes a user's own file.
"""
