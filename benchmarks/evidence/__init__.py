"""The evidence: every learner on the 26 tasks, as docs/protocol.md has it."""
