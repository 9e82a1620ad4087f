"""Tasks: from names and specifications to encoded splits with provenance."""
