"""Routes of surrogate diagnostics and of planning."""
