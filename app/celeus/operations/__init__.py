"""What the service does: operations that each run in one transaction."""
