"""Files and folders that are written: whole, or growing by lines; and what a run folder holds."""
