"""What a run has shown so far: the score `matrix`, the `ledger`, the `run_record` of it all."""
