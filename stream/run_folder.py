"""The names in a run folder, for those who write it and those who only read it."""

FILE_NAME = "results.json"
SCHEMA = 1  # of results.json; raised when a reader has to know
LOCK, LOG_NAME = "lock", "run.log"  # all that a run killed before its first record leaves
