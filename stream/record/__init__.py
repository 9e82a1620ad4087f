"""What a run has shown so far: the score `matrix`, the `ledger` of parameters, `run_record`."""
