"""Sessions: opening, rounds, amendments, and the ledger they are written to."""
