"""Sessions in one's own process: the core's engine over a ledger in a file, and no server."""
