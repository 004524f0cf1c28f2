"""Task, instructions, comments and exported labels of a session: none is part of its ledger."""
