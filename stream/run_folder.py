"""The file names in a run folder, shared by the program and by the analysis."""

FILE_NAME = "results.json"
SCHEMA = 1  # of results.json; raise it when readers must handle a change
LOCK, LOG_NAME = "lock", "run.log"  # all files of a run killed before its first record
