"""What `build_tasks` made of the same rows before, on disk.

`contents` says what files hold without reading those that are as they were, `arrays` keeps many
arrays in few files, and `entries` is the cache: whole streams, by everything that decides them.
"""
