"""The field's own streams: every learner tuned alike, then run in every published order."""
