"""Run folders on disk (`collect`), their `values`, which are `comparable`, and `methods`."""
