"""Sessions: the fold of a ledger's draws and losses into an interval."""
