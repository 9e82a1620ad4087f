"""Finding runs on disk (`collect`) and which of them may stand side by side (`comparable`)."""
